"""How a schema registry is asked: HTTP with its identities and TLS, tried again while that may help, never for ever.

Errors name the address without the user and password in it, and no header.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import requests
from requests.exceptions import InvalidSchema, InvalidURL, RequestException
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

from archiver.errors import SchemaRegistryDenied, SchemaRegistryError, SchemaRegistryUnavailable
from catalog.iceberg.retry_after import retry_after_seconds

NOT_FOUND: Final = 404
DENIED: Final = (401, 403)
BUSY: Final = (408, 429)
SERVER_ERRORS: Final = 500
LONGEST_ASKED_SECONDS: Final = 30.0
"""A registry that asks for more isn't waited for: it is left alone for so long, and the caller told."""
ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistrySettings:
    """Where a schema registry is and who asks. Either `username` and `password`, or `token`, or neither.

    `urls` are tried in turn; they hold no user and password. Times are seconds: `pause` bounds the first wait between
    attempts, a registry that all attempts failed for is left alone for `rest`, an id that it didn't know is asked for
    again after `forget_after`, and a subject's latest schema after `latest_ttl`.
    """

    urls: tuple[str, ...]
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    timeout: float = 10.0
    latest_ttl: float = 0.0
    attempts: int = 6
    pause: float = 0.25
    rest: float = 5.0
    forget_after: float = 30.0

    @property
    def name(self) -> str:
        """What tells this registry from others: its addresses."""
        return ",".join(url.rstrip("/") for url in self.urls)


class RegistryHttp:
    """Asks a registry. Not to be used by two threads at once."""

    def __init__(self, settings: SchemaRegistrySettings) -> None:
        self._settings = settings
        self._session = _session(settings)
        self._resting_until = 0.0
        self._failure: SchemaRegistryUnavailable | None = None

    def get(self, path: str) -> Mapping[str, Any] | None:
        """The answer, None where there is no such thing; tried again, on each address in turn, while that may help.

        Raises SchemaRegistryUnavailable, SchemaRegistryDenied, SchemaRegistryError.
        """
        if self._failure is not None and time.monotonic() < self._resting_until:
            raise self._failure
        retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, SchemaRegistryUnavailable)),
            stop=self._gives_up,
            wait=self._pause,
            reraise=True,
        )
        urls = self._settings.urls
        try:
            for attempt in retrying:
                with attempt:
                    return self._once(urls[(attempt.retry_state.attempt_number - 1) % len(urls)], path)
        except SchemaRegistryUnavailable as error:
            rest = max(self._settings.rest, _asked(error))
            self._failure, self._resting_until = error, time.monotonic() + rest
            raise
        raise AssertionError("unreachable: the last attempt raises")

    def _gives_up(self, state: RetryCallState) -> bool:
        return state.attempt_number >= self._settings.attempts or _asked(_failure(state)) > LONGEST_ASKED_SECONDS

    def _pause(self, state: RetryCallState) -> float:
        """Grows at random; once every address was tried, no shorter than the last one asks for."""
        settings = self._settings
        growing = wait_random_exponential(multiplier=settings.pause, max=settings.timeout)(state)
        return growing if state.attempt_number % len(settings.urls) else max(growing, _asked(_failure(state)))

    def _once(self, url: str, path: str) -> Mapping[str, Any] | None:
        where = {"url": url, "path": path}
        try:
            answer = self._session.get(url.rstrip("/") + path, timeout=self._settings.timeout, allow_redirects=False)
        except (InvalidURL, InvalidSchema) as error:
            raise SchemaRegistryError(f"the schema registry's url can't be right: {error}", **where) from error
        except RequestException as error:
            if (refusal := _refusal(error)) is not None:
                raise SchemaRegistryError(
                    f"TLS with the schema registry fails: {refusal}. Set `ca_file` to whom to trust, `cert_file` and"
                    " `key_file` to the client's own certificate, and the url to a name that its certificate has",
                    **where,
                ) from error
            # A server that wants a certificate may cut the connection before its alert is read.
            is_anonymous = url.startswith("https") and self._settings.cert_file is None
            hint = ", or does it want a client certificate (`cert_file`)?" if is_anonymous else "?"
            raise SchemaRegistryUnavailable(
                f"the schema registry does not answer: {type(error).__name__}. Is it running, is the url right{hint}",
                **where,
            ) from error
        except OSError as error:
            raise SchemaRegistryError(f"a file of [schema_registry] can't be used: {error}", **where) from error
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
        asked = retry_after_seconds(answer)
        told = {"retry_after": asked} if asked else {}
        raise SchemaRegistryUnavailable("the schema registry can't answer now", status=status, **told, **where)
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


def _failure(state: RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()


def _asked(error: BaseException | None) -> float:
    """How long the schema registry asked to be left alone (`Retry-After`)."""
    return float(error.context.get("retry_after", 0.0)) if isinstance(error, SchemaRegistryUnavailable) else 0.0


def _session(settings: SchemaRegistrySettings) -> requests.Session:
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


def _refusal(error: BaseException) -> str | None:
    """What one side of a TLS connection holds against the other; None where the connection only broke."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return str(cause.verify_message)
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return str(cause.reason or cause).lower().replace("_", " ")
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all that it came from, however libraries have wrapped it."""
    pending, seen = [error], set()
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        wrapped = (current.__cause__, current.__context__, getattr(current, "reason", None), *current.args)
        pending += [each for each in wrapped if isinstance(each, BaseException)]
