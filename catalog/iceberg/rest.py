"""pyiceberg's REST client with timeouts, and its failures as `catalog.errors`.

Errors name catalog and table, never a credential.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

import requests
from pydantic import ValidationError
from pyiceberg import exceptions
from pyiceberg.catalog import TOKEN
from pyiceberg.catalog.rest import (
    _RETRY_ARGS,
    AUTHORIZATION_HEADER,
    BEARER_PREFIX,
    SNAPSHOT_LOADING_MODE,
    Capability,
    Endpoints,
    RestCatalog,
)
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableRequest, Table, TableIdentifier
from pyiceberg.table.update import AddSchemaUpdate, AssertCreate, TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier
from tenacity import retry

from catalog.errors import CatalogDenied, CatalogRefused, CatalogUnreachable, MetadataUnwritable, TableError
from catalog.iceberg.answer_text import limited, without_credentials
from catalog.iceberg.auth_settings import with_auth
from catalog.iceberg.commit_answer import CommitAnswer
from catalog.iceberg.credentials import for_clients, offers_signing_only, with_own_client
from catalog.iceberg.iceberg_format import unreadable_types
from catalog.iceberg.late_file_io import LateFileIO, may_be_late
from catalog.iceberg.load_answer import table_of
from catalog.iceberg.retry_after import AskedPause
from catalog.iceberg.store_refusals import checksum_advice, denial_advice, denies_explicitly, is_denied, is_expired

CONNECT_SECONDS: Final = 10.0
_SERVER_ERROR: Final = 500

UNANSWERED = (
    requests.RequestException,
    exceptions.CommitStateUnknownException,
    exceptions.ServerError,
    exceptions.ServiceUnavailableError,
    exceptions.TooManyRequestsError,
)
"""Failures after which nobody knows whether the catalog did what was asked."""

_DENIED = (
    exceptions.UnauthorizedError,
    exceptions.ForbiddenError,
    exceptions.AuthorizationExpiredError,
    exceptions.OAuthError,
)
_REFUSED = (
    exceptions.RESTError,
    exceptions.NoSuchNamespaceError,
    exceptions.NoSuchTableError,
    exceptions.NoSuchIdentifierError,
    exceptions.CommitFailedException,
    NotImplementedError,
)

REFUSALS = (exceptions.BadRequestError, *_DENIED, NotImplementedError)
"""Refusals of a request. The catalog may have done it all the same: see `send_commit`."""

FAILURES = (*UNANSWERED, *REFUSALS, exceptions.RESTError, exceptions.CommitFailedException, ValidationError)
"""All failures of a request to change a table. After each of them only the table shows whether it was changed."""

_COMMIT_ERRORS: Final[dict[int, type[Exception]]] = {
    409: exceptions.CommitFailedException,
    500: exceptions.CommitStateUnknownException,
    502: exceptions.CommitStateUnknownException,
    504: exceptions.CommitStateUnknownException,
}

_UNKNOWN_STATE: Final = "CommitStateUnknown"
"""A part of the error's type. Polaris answered it with status 400 (apache/polaris#5145)."""

_IS_NESSIE: Final = "nessie.is-nessie-catalog"
"""Nessie's configuration of clients has it, as "true"."""

_UNKNOWN_TYPE: Final = "Unsupported field type"
_AWS: Final = re.compile(r"\.amazonaws\.com(\.cn)?$")
_PAGE: Final = re.compile(r"<html\b", re.IGNORECASE)
_MARKUP: Final = re.compile(r"<(style|script)\b.*?</\1>|<[^>]+>", re.IGNORECASE | re.DOTALL)


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _with_new_token(method: _Method) -> _Method:
    """Repeat a request once with a new token, as pyiceberg does."""
    retrying: Any = retry(**cast("Any", _RETRY_ARGS))
    return cast("_Method", retrying(method))


class BoundedRestCatalog(RestCatalog):
    """Requests fail after `timeout_seconds` without a byte.

    `asked_pause` is from `Retry-After`.
    """

    def __init__(
        self, name: str, *, timeout_seconds: float, properties: Mapping[str, str], late_io: bool = False
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._late_io = late_io
        self.configured = dict(properties)
        self.asked_pause = AskedPause()
        super().__init__(name, **with_auth(properties))
        self.properties = with_own_client(self.properties, self.configured)

    @property
    def session(self) -> requests.Session:
        return self._session

    @_with_new_token
    def load_table(self, identifier: str | Identifier, known: Table | None = None) -> Table:
        """Reuse parts of `known`. With it, a server error is retried once."""
        if SNAPSHOT_LOADING_MODE in self.properties:
            table: Table = super().load_table(identifier)
            return table
        self._check_endpoint(Capability.V1_LOAD_TABLE)
        url = self.url(Endpoints.load_table, prefixed=True, **self._split_identifier_for_path(identifier))
        answer = self._session.get(url)
        if known is not None and answer.status_code >= _SERVER_ERROR:
            answer = self._session.get(url)
        try:
            answer.raise_for_status()
        except requests.HTTPError as error:
            _handle_non_200_response(error, {404: exceptions.NoSuchTableError})
        return self._response_to_table(self.identifier_to_tuple(identifier), table_of(answer.text, known))

    @_with_new_token
    def send_commit(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitAnswer:
        """Like pyiceberg's `commit_table`, but with the answer parsed on use.

        Raises one of `FAILURES`; CommitStateUnknownException by the error's type, not its status.
        """
        self._check_endpoint(Capability.V1_UPDATE_TABLE)
        *namespace, name = table.name()
        identifier = TableIdentifier.model_validate({"namespace": namespace, "name": name})
        request = CommitTableRequest(identifier=identifier, requirements=requirements, updates=updates)
        url = self.url(Endpoints.update_table, prefixed=True, **self._split_identifier_for_path(identifier))
        headers = self._session.headers
        if token := table.config.get(TOKEN):
            headers[AUTHORIZATION_HEADER] = f"{BEARER_PREFIX} {token}"
        text = commit_text(request, table, renumbers=self.properties.get(_IS_NESSIE) == "true")
        answer = self._session.post(url, data=text.encode(), headers=headers)
        try:
            answer.raise_for_status()
        except requests.HTTPError as error:
            kinds = _COMMIT_ERRORS
            if _UNKNOWN_STATE in answer.text:
                kinds = {answer.status_code: exceptions.CommitStateUnknownException}
            _handle_non_200_response(error, kinds)
        return CommitAnswer.read(answer.text)

    def _load_file_io(self, properties: Mapping[str, str] = EMPTY_DICT, location: str | None = None) -> FileIO:
        given = with_own_client(for_clients(properties, location), self.configured)
        whole = {**self.properties, **given}
        if offers_signing_only(whole, self.configured, os.environ):
            raise CatalogDenied(
                "the catalog signs each request to the store and vends no keys (s3.remote-signing-enabled, s3.signer)."
                " The archiver signs its requests itself. Have the catalog vend credentials, or give s3.access-key-id"
                " and s3.secret-access-key in [catalog]. If this machine has a role for the store, set"
                ' "s3.remote-signing-enabled" = "false" there',
                location=location,
            )
        if self._late_io and may_be_late(whole, location):
            return LateFileIO(whole, partial(self._suited_file_io, given, location))
        return self._suited_file_io(given, location)

    def _suited_file_io(self, properties: Mapping[str, str], location: str | None) -> FileIO:
        from catalog.iceberg.file_io import suited

        return suited(super()._load_file_io(dict(properties), location), location)

    def _config_headers(self, session: requests.Session) -> None:
        # Every session passes this hook before its first request, even before the request for an OAuth token.
        super()._config_headers(session)
        limited = partial(session.request, timeout=(CONNECT_SECONDS, self._timeout_seconds))
        session.request = limited  # type: ignore[method-assign]
        session.merge_environment_settings = _once_for_each_server(session)  # type: ignore[method-assign]
        session.hooks["response"].append(self.asked_pause.note)


def commit_text(request: CommitTableRequest, table: Table, *, renumbers: bool) -> str:
    """Add `last-column-id` of added schemas, which Nessie before 0.105.3 requires.

    With `renumbers`, an empty schema is a new table's first: Nessie gives the fields of the first schema new ids.
    """
    added = [update.schema_.highest_field_id for update in request.updates if isinstance(update, AddSchemaUpdate)]
    if not added:
        return request.model_dump_json()
    is_new = any(isinstance(requirement, AssertCreate) for requirement in request.requirements)
    last = max(added) if is_new else max(*added, table.metadata.last_column_id)
    body = json.loads(request.model_dump_json())
    updates = body["updates"]
    for update in updates:
        if update["action"] == "add-schema":
            update["last-column-id"] = last
    if is_new and renumbers:
        first = next(update for update in updates if update["action"] == "add-schema")
        first["schema"]["schema-id"] = 1
        empty = {"type": "struct", "fields": [], "schema-id": 0}
        updates.insert(updates.index(first), {"action": "add-schema", "schema": empty, "last-column-id": 0})
    return json.dumps(body)


def _once_for_each_server(session: requests.Session) -> Callable[..., dict[str, Any]]:
    """Cache a server's environment settings: reading them takes longer than sending.

    Settings of a single request aren't cached. `ssl.cabundle` wins over REQUESTS_CA_BUNDLE.
    """
    merge = session.merge_environment_settings
    cached: dict[tuple[object, ...], dict[str, Any]] = {}

    def merged(url: str, proxies: Any, stream: Any, verify: Any, cert: Any) -> dict[str, Any]:
        if verify is None and isinstance(session.verify, str):
            verify = session.verify
        if proxies:
            return merge(url, proxies, stream, verify, cert)
        key = (*urlsplit(url)[:2], stream, verify, cert)
        if key not in cached:
            cached[key] = merge(url, {}, stream, verify, cert)
        return dict(cached[key])

    return merged


def connect(properties: Mapping[str, str], *, timeout_seconds: float, late_io: bool = False) -> BoundedRestCatalog:
    """Raises CatalogUnreachable, CatalogDenied or CatalogRefused."""
    uri = properties.get("uri", "")
    if not uri or properties.get("type", "rest") != "rest":
        raise CatalogRefused("the catalog must be an Iceberg REST catalog: set catalog.uri", uri=uri or None)
    with in_our_words(uri):
        return BoundedRestCatalog("archiver", timeout_seconds=timeout_seconds, properties=properties, late_io=late_io)


@contextmanager
def in_our_words(uri: str, table: str | None = None) -> Iterator[None]:
    where = {"catalog": uri} | ({"table": table} if table else {})
    try:
        yield
    except TableError:
        raise
    except UNANSWERED as error:
        msg = f"the catalog gave no answer: {_said(error)}. Is it running, and is catalog.uri right?"
        raise CatalogUnreachable(msg, **where) from error
    except ValidationError as error:
        if unknown := sorted({str(detail["input"]) for detail in error.errors() if _UNKNOWN_TYPE in detail["msg"]}):
            raise unreadable_types(unknown, **where) from error
        msg = "the catalog's answer is not one of the Iceberg REST protocol: is catalog.uri right?"
        raise CatalogUnreachable(msg, **where, errors=error.error_count()) from error
    except _DENIED as error:
        msg = f"the catalog refused our credentials or rights: {_said(error)}. {_catalog_advice(error, uri)}"
        raise CatalogDenied(msg, **where) from error
    except _REFUSED as error:
        raise CatalogRefused(f"the catalog refused the request: {_said(error)}", **where) from error
    except ImportError as error:
        msg = (
            f"the catalog's settings need the Python package {error.name}, which isn't here: install it, or leave "
            "these settings out"
        )
        raise CatalogRefused(msg, **where) from error
    except OSError as error:
        if is_denied(error) and not is_expired(error):
            msg = f"the table's storage refused to take metadata: {denial_advice(error, 's3', writes=True)}"
            raise CatalogDenied(msg, **where, cause=_said(error)) from error
        advice = checksum_advice(error, "s3")
        msg = f"the table's storage failed: {_said(error)}" + (f". {advice}" if advice else "")
        raise MetadataUnwritable(msg, **where) from error


def _catalog_advice(error: Exception, uri: str) -> str:
    if denies_explicitly(error):
        return "A policy denies this request, and no grant helps: change the policy that the catalog names"
    if _AWS.search(urlsplit(uri).hostname or ""):
        return "Check the AWS identity that signs (environment, profile or role), and its rights"
    return "Check catalog.credential or catalog.token, and what they may do in the catalog"


def _said(error: Exception) -> str:
    """Pages of proxies lose their markup."""
    text = without_credentials(str(error))
    if _PAGE.search(text):
        text = _MARKUP.sub(" ", text)
    words = " ".join(limited(text).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
