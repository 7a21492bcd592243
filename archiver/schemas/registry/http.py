"""HTTP requests to a schema registry. Errors show no passwords or headers."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit, urlunsplit

import requests
from requests.exceptions import InvalidSchema, InvalidURL, RequestException
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

from archiver.errors import SchemaRegistryDenied, SchemaRegistryError, SchemaRegistryUnavailable
from archiver.schemas.registry.settings import SchemaRegistrySettings
from catalog.iceberg.retry_after import retry_after_seconds

NOT_FOUND: Final = 404
DENIED: Final = (401, 403)
BUSY: Final = (408, 429)
SERVER_ERRORS: Final = 500
NOT_IMPLEMENTED: Final = 501
LONGEST_ASKED_SECONDS: Final = 30.0
"""The longest `Retry-After` to wait for. If the registry names a longer time, calls fail until then."""
ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"

_Body = TypeVar("_Body", dict[str, Any], list[Any])


class RegistryHttp:
    """Not thread-safe."""

    def __init__(self, settings: SchemaRegistrySettings) -> None:
        self._settings = settings
        self._session = _session(settings)
        self._resting_until = 0.0
        self._failure: SchemaRegistryUnavailable | None = None

    def get(self, path: str, *, may_fail: bool = False) -> Mapping[str, Any] | None:
        """None if not found. Retries transient errors, on each url in turn.

        If it `may_fail`, the registry isn't left alone after status 500: it may concern this request only.
        Raises SchemaRegistryUnavailable, SchemaRegistryDenied, SchemaRegistryError.
        """
        return self._answer(path, dict, may_fail=may_fail)

    def get_list(self, path: str) -> Sequence[Any] | None:
        return self._answer(path, list)

    def _answer(self, path: str, kind: type[_Body], *, may_fail: bool = False) -> _Body | None:
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
                    url = urls[(attempt.retry_state.attempt_number - 1) % len(urls)]
                    return self._once(url, path, kind)
        except SchemaRegistryUnavailable as error:
            if may_fail and error.context.get("status") == SERVER_ERRORS:
                raise
            rest = max(self._settings.rest, _asked(error))
            self._failure, self._resting_until = error, time.monotonic() + rest
            raise
        raise AssertionError("unreachable: the last attempt raises")

    def _gives_up(self, state: RetryCallState) -> bool:
        return state.attempt_number >= self._settings.attempts or _asked(_failure(state)) > LONGEST_ASKED_SECONDS

    def _pause(self, state: RetryCallState) -> float:
        """After a round of all urls `Retry-After` counts."""
        settings = self._settings
        growing = wait_random_exponential(multiplier=settings.pause, max=settings.timeout)(state)
        return growing if state.attempt_number % len(settings.urls) else max(growing, _asked(_failure(state)))

    def _once(self, url: str, path: str, kind: type[_Body]) -> _Body | None:
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
            # A server that wants a client certificate may close the connection before we read its alert.
            is_anonymous = url.startswith("https") and self._settings.cert_file is None
            hint = ", or does it want a client certificate (`cert_file`)?" if is_anonymous else "?"
            raise SchemaRegistryUnavailable(
                f"the schema registry does not answer: {type(error).__name__}. Is it running, is the url right{hint}",
                **where,
            ) from error
        except OSError as error:
            raise SchemaRegistryError(f"a file of [schema_registry] can't be used: {error}", **where) from error
        return _read(answer, where, kind)


def _read(answer: requests.Response, where: Mapping[str, str], kind: type[_Body]) -> _Body | None:
    status = answer.status_code
    if status in DENIED:
        raise SchemaRegistryDenied(
            "the schema registry refuses the credentials: set `username` and `password`, or `token`",
            status=status,
            **where,
        )
    if (status >= SERVER_ERRORS and status != NOT_IMPLEMENTED) or status in BUSY:
        asked = retry_after_seconds(answer)
        details = {"retry_after": asked} if asked else {}
        raise SchemaRegistryUnavailable("the schema registry can't answer now", status=status, **details, **where)
    try:
        body = answer.json()
    except ValueError:
        body = None
    if answer.is_redirect:
        raise SchemaRegistryError(
            "the schema registry's url leads to another address, and credentials are sent to the configured one only:"
            " set `url` to that address, without the path of the request",
            status=status,
            leads_to=_address(answer.headers["Location"]),
            **where,
        )
    if status == NOT_FOUND and isinstance(body, dict) and "error_code" in body:
        return None
    if status != requests.codes.ok or not isinstance(body, kind):
        raise SchemaRegistryError(
            "this is no schema registry with Confluent's API: correct the url, its path included",
            status=status,
            **where,
        )
    return body


def _address(location: str) -> str:
    """User and query may be secret."""
    parts = urlsplit(location)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _failure(state: RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()


def _asked(error: BaseException | None) -> float:
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
    """None if the connection only broke."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return str(cause.verify_message)
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return str(cause.reason or cause).lower().replace("_", " ")
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    pending, seen = [error], set()
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        wrapped = (current.__cause__, current.__context__, getattr(current, "reason", None), *current.args)
        pending += [cause for cause in wrapped if isinstance(cause, BaseException)]
