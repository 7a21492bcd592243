"""A schema registry with Confluent's REST API: schemas by id and by subject, kept once they are read.

A schema never changes under its id, so ids are kept for the life of a client; what is newest is asked each time.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import requests
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from archiver.errors import (
    BadSchema,
    SchemaRegistryDenied,
    SchemaRegistryError,
    SchemaRegistryUnavailable,
    UnknownSubject,
)
from archiver.schemas.registered import CompiledSchema, RegisteredSchema, compile_registered

NOT_FOUND: Final = 404
DENIED: Final = (401, 403)
BUSY: Final = (408, 429)
SERVER_ERRORS: Final = 500
MOST_REFERENCES: Final = 1_000
ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """Where a schema registry is and who asks. Either `username` and `password`, or `token`, or neither.

    `urls` are tried in turn. Times are seconds: `pause` bounds the first wait between attempts; an id that the registry
    didn't know is asked for again after `forget_after`.
    """

    urls: tuple[str, ...]
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    timeout: float = 10.0
    attempts: int = 6
    pause: float = 0.25
    forget_after: float = 30.0


class SchemaRegistry:
    """A client. Safe to share between threads, which wait for each other."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._session = _session(settings)
        self._lock = threading.Lock()
        self._known: dict[int, CompiledSchema] = {}
        self._missing: dict[int, float] = {}
        self._versions: dict[tuple[str, int], Mapping[str, Any]] = {}

    def by_id(self, schema_id: int) -> CompiledSchema | None:
        """The schema of an id; None where the registry says that there is none, or that it isn't Protobuf.

        Raises SchemaRegistryUnavailable, SchemaRegistryDenied, BadSchema.
        """
        with self._lock:
            return self._by_id(schema_id)

    def _by_id(self, schema_id: int) -> CompiledSchema | None:
        if schema_id not in self._known:
            if self._missing.get(schema_id, -math.inf) > time.monotonic():
                return None
            found = self._get(f"/schemas/ids/{schema_id}")
            if found is None or not _is_protobuf(found):
                self._missing[schema_id] = time.monotonic() + self._settings.forget_after
                return None
            self._known[schema_id] = self._compile(schema_id, found)
        return self._known[schema_id]

    def latest(self, subject: str) -> CompiledSchema:
        """The newest schema of a subject. Raises UnknownSubject where there is none, else what `by_id` raises."""
        with self._lock:
            return self._latest(subject)

    def _latest(self, subject: str) -> CompiledSchema:
        found = self._get(f"/subjects/{_quoted(subject)}/versions/latest")
        if found is None:
            raise UnknownSubject(
                "the schema registry has no such subject: register its schema, or correct `subject`,"
                " `subject_strategy` or the url",
                subject=subject,
                url=self._settings.urls[0],
            )
        schema_id = int(found["id"])
        if not _is_protobuf(found):
            kind = found.get("schemaType", "AVRO")
            raise BadSchema(f"the subject's schema is {kind}, not Protobuf", subject=subject, schema_id=schema_id)
        known = self._known.get(schema_id)
        if known is None:
            known = self._known[schema_id] = self._compile(schema_id, found)
        return known

    def _compile(self, schema_id: int, found: Mapping[str, Any]) -> CompiledSchema:
        references = dict(self._references(found))
        return compile_registered(RegisteredSchema(id=schema_id, text=str(found["schema"]), references=references))

    def _references(self, found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Names and texts of all that a schema refers to, directly or not."""
        seen: set[str] = set()
        pending = list(found.get("references") or ())
        while pending:
            reference = pending.pop()
            name = str(reference["name"])
            if name in seen:
                continue
            if len(seen) >= MOST_REFERENCES:
                raise BadSchema("a schema refers to too many others", limit=MOST_REFERENCES)
            seen.add(name)
            target = self._version(str(reference["subject"]), int(reference["version"]))
            pending.extend(target.get("references") or ())
            yield name, str(target["schema"])

    def _version(self, subject: str, version: int) -> Mapping[str, Any]:
        found = self._versions.get((subject, version))
        if found is None:
            found = self._get(f"/subjects/{_quoted(subject)}/versions/{version}")
            if found is None:
                raise BadSchema(
                    "a schema refers to one that the registry doesn't have", subject=subject, version=version
                )
            self._versions[subject, version] = found
        return found

    def _get(self, path: str) -> Mapping[str, Any] | None:
        """The answer, None where there is no such thing; tried again, on each address in turn, while that may help."""
        retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, SchemaRegistryUnavailable)),
            stop=stop_after_attempt(self._settings.attempts),
            wait=wait_random_exponential(multiplier=self._settings.pause, max=self._settings.timeout),
            reraise=True,
        )
        for attempt in retrying:
            with attempt:
                urls = self._settings.urls
                return self._once(urls[(attempt.retry_state.attempt_number - 1) % len(urls)], path)
        raise AssertionError("unreachable: the last attempt raises")

    def _once(self, url: str, path: str) -> Mapping[str, Any] | None:
        where = {"url": url, "path": path}
        try:
            answer = self._session.get(url.rstrip("/") + path, timeout=self._settings.timeout, allow_redirects=False)
        except (
            requests.exceptions.SSLError,
            requests.exceptions.InvalidURL,
            requests.exceptions.InvalidSchema,
        ) as error:
            raise SchemaRegistryError(f"the schema registry can't be asked: {error}", **where) from error
        except (requests.exceptions.RequestException, OSError) as error:
            raise SchemaRegistryUnavailable(
                f"the schema registry does not answer: {type(error).__name__}. Is it running, and is the url right?",
                **where,
            ) from error
        return _read(answer, where)


def _read(answer: requests.Response, where: Mapping[str, str]) -> Mapping[str, Any] | None:
    status = answer.status_code
    if status in DENIED:
        raise SchemaRegistryDenied(
            "the schema registry refuses the credentials: set `username` and `password`, or `token`",
            status=status,
            **where,
        )
    if status >= SERVER_ERRORS or status in BUSY:
        raise SchemaRegistryUnavailable("the schema registry can't answer now", status=status, **where)
    try:
        body = answer.json()
    except ValueError:
        body = None
    if status == NOT_FOUND and isinstance(body, dict) and "error_code" in body:
        return None
    if status != requests.codes.ok or not isinstance(body, dict):
        raise SchemaRegistryError(
            "this is no schema registry with Confluent's API: correct the url, its path included",
            status=status,
            **where,
        )
    return body


def _session(settings: RegistrySettings) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.headers["Accept"] = ACCEPT
    session.verify = settings.ca_file or True
    if settings.cert_file is not None:
        session.cert = settings.cert_file if settings.key_file is None else (settings.cert_file, settings.key_file)
    if settings.token is not None:
        session.headers["Authorization"] = f"Bearer {settings.token}"
    elif settings.username is not None:
        session.auth = (settings.username, settings.password or "")
    return session


def _is_protobuf(found: Mapping[str, Any]) -> bool:
    return bool(found.get("schemaType", "AVRO") == "PROTOBUF")


def _quoted(subject: str) -> str:
    return quote(subject, safe="")
