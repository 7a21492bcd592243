"""A client of a schema registry with Confluent's REST API: gets schemas by id and by subject, and caches them.

The schema of an id never changes, so a client caches it for as long as it lives. It asks again for the latest schema of
a subject.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from archiver.errors import BadSchema, UnknownSubject
from archiver.schemas.registered_schema import CompiledSchema, RegisteredSchema, compile_registered
from archiver.schemas.schema_registry_http import RegistryHttp
from archiver.schemas.schema_registry_settings import SchemaRegistrySettings

__all__ = ["SchemaRegistry", "SchemaRegistrySettings", "client_of"]

MOST_REFERENCES: Final = 1_000


class SchemaRegistry:
    """A client of one schema registry. Threads may share it; they wait for each other."""

    def __init__(self, settings: SchemaRegistrySettings) -> None:
        self._settings = settings
        self._http = RegistryHttp(settings)
        self._lock = threading.Lock()
        self._known: dict[int, CompiledSchema] = {}
        self._missing: dict[int, tuple[float, BadSchema | None]] = {}
        self._newest: dict[str, tuple[float, CompiledSchema]] = {}
        self._versions: dict[tuple[str, int], Mapping[str, Any]] = {}

    def by_id(self, schema_id: int) -> CompiledSchema | None:
        """The schema of an id. None if the schema registry has no such id, or its schema isn't Protobuf.

        Raises SchemaRegistryUnavailable, SchemaRegistryDenied, SchemaRegistryError, BadSchema.
        """
        with self._lock:
            return self._by_id(schema_id)

    def _by_id(self, schema_id: int) -> CompiledSchema | None:
        if schema_id in self._known:
            return self._known[schema_id]
        until, bad = self._missing.get(schema_id, (0.0, None))
        if until > time.monotonic():
            if bad is not None:
                raise bad
            return None
        found = self._http.get(f"/schemas/ids/{schema_id}")
        bad = None
        if found is not None and _is_protobuf(found):
            try:
                return self._compile(schema_id, found)
            except BadSchema as error:
                bad = error
        self._missing[schema_id] = (time.monotonic() + self._settings.forget_after, bad)
        if bad is not None:
            raise bad
        return None

    def latest(self, subject: str) -> CompiledSchema:
        """The latest schema of a subject. Raises UnknownSubject if there is none, and what `by_id` raises."""
        with self._lock:
            until, newest = self._newest.get(subject, (0.0, None))
            if newest is None or until <= time.monotonic():
                newest = self._latest(subject)
                self._newest[subject] = (time.monotonic() + self._settings.latest_ttl, newest)
            return newest

    def _latest(self, subject: str) -> CompiledSchema:
        found = self._http.get(f"/subjects/{_quoted(subject)}/versions/latest")
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
        return self._compile(schema_id, found) if known is None else known

    def _compile(self, schema_id: int, found: Mapping[str, Any]) -> CompiledSchema:
        references = dict(self._references(found))
        compiled = compile_registered(RegisteredSchema(id=schema_id, text=str(found["schema"]), references=references))
        self._known[schema_id] = compiled
        return compiled

    def _references(self, found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The names and texts of all schemas that a schema refers to, directly or not."""
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
            found = self._http.get(f"/subjects/{_quoted(subject)}/versions/{version}")
            if found is None:
                raise BadSchema(
                    "a schema refers to one that the schema registry doesn't have", subject=subject, version=version
                )
            self._versions[subject, version] = found
        return found


@lru_cache(maxsize=8)
def client_of(settings: SchemaRegistrySettings) -> SchemaRegistry:
    """The client for these settings. All callers in a process share it."""
    return SchemaRegistry(settings)


def _is_protobuf(found: Mapping[str, Any]) -> bool:
    return bool(found.get("schemaType", "AVRO") == "PROTOBUF")


def _quoted(subject: str) -> str:
    return quote(subject, safe="")
