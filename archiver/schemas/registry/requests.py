"""Requests for schemas by id, GUID and subject.

Confluent and Redpanda look ids up in the context of the parameter `subject`. Apicurio and Karapace have no
contexts: `:.team:` is a part of the name. Only Confluent has GUIDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode
from uuid import UUID

from archiver.errors import SchemaRegistryDenied, SchemaRegistryError
from archiver.schemas.registry.contexts import context_of, in_context
from archiver.schemas.registry.http import SERVER_ERRORS, RegistryHttp
from archiver.schemas.registry.settings import SchemaRegistrySettings

Answer: TypeAlias = Mapping[str, Any]

_REFUSALS: Final = frozenset({400, 404, 405, 406, 422, 501})
"""Statuses of a server that doesn't have a path, or doesn't take a parameter."""


class RegistryRequests:
    """Not thread-safe. Methods raise as `RegistryHttp`, and return None if there is no such schema."""

    def __init__(self, settings: SchemaRegistrySettings) -> None:
        self._http = RegistryHttp(settings)
        self._contexts: frozenset[str] = frozenset()

    def by_id(self, schema_id: int, subject: str | None, form: str | None = None) -> Answer | None:
        """In the context of the subject, never of another one.

        In a named context Confluent returns a subject's own schemas; the context alone finds the rest. Registries
        without `form` return text.
        """
        path, context = f"/schemas/ids/{schema_id}", context_of(subject)
        refusal: SchemaRegistryError | None = None
        for name in dict.fromkeys(filter(None, (subject, context))):
            try:
                answer = self._http.get(_with(path, subject=name, format=form), may_fail=form is not None)
            except SchemaRegistryError as error:
                if not is_refusal(error):
                    raise
                refusal = error
            else:
                if answer is not None:
                    return answer
        if not context or not self._has_context(context):
            return self._http.get(_with(path, format=form), may_fail=form is not None)
        if refusal is not None:
            raise refusal
        return None

    def by_guid(self, guid: UUID, form: str | None = None) -> Answer | None:
        """None also if the registry has no GUIDs."""
        try:
            return self._http.get(_with(f"/schemas/guids/{guid}", format=form), may_fail=form is not None)
        except SchemaRegistryError as error:
            if not is_refusal(error) or not self._is_registry():
                raise
            return None

    def latest(self, subject: str) -> Answer | None:
        return self._http.get(f"/subjects/{_quoted(subject)}/versions/latest")

    def latest_deleted(self, subject: str) -> Answer | None:
        path = f"/subjects/{_quoted(subject)}/versions"
        try:
            versions = self._http.get_list(_with(path, deleted="true"))
        except SchemaRegistryError as error:
            if not is_refusal(error):
                raise
            return None
        return self._http.get(_with(f"{path}/{max(map(int, versions))}", deleted="true")) if versions else None

    def versions(self, subject: str) -> list[int]:
        """Ascending, with softly deleted ones."""
        path = f"/subjects/{_quoted(subject)}/versions"
        try:
            numbers = self._http.get_list(_with(path, deleted="true"))
        except SchemaRegistryError as error:
            if not is_refusal(error):
                raise
            numbers = self._http.get_list(path)
        return sorted(map(int, numbers or ()))

    def version(self, subject: str, version: int, context: str, form: str | None = None) -> Answer | None:
        """From `context`, even if softly deleted."""
        name = in_context(subject, context)
        answer = self._version(name, version, form)
        if answer is None and name != subject and not self._has_context(context):
            return self._version(subject, version, form)
        return answer

    def _version(self, subject: str, version: int, form: str | None) -> Answer | None:
        path = f"/subjects/{_quoted(subject)}/versions/{version}"
        try:
            answer = self._http.get(_with(path, deleted="true", format=form), may_fail=form is not None)
        except SchemaRegistryError as error:
            if not is_refusal(error):
                raise
            answer = None
        return self._http.get(_with(path, format=form), may_fail=form is not None) if answer is None else answer

    def _has_context(self, context: str) -> bool:
        """True if the credentials may not list contexts."""
        if context not in self._contexts:
            try:
                names = self._http.get_list("/contexts") or ()
            except SchemaRegistryDenied:
                return True
            except SchemaRegistryError as error:
                if not is_refusal(error):
                    raise
                names = ()
            self._contexts = frozenset(f":{str(name).strip(':')}:" for name in names)
        return context in self._contexts

    def _is_registry(self) -> bool:
        """Whether the url is a registry's, and only the path is missing."""
        try:
            return self._http.get_list("/schemas/types") is not None
        except SchemaRegistryError as error:
            if not is_refusal(error):
                raise
            return False


def is_refusal(error: SchemaRegistryError) -> bool:
    """The server doesn't know the path or a parameter."""
    return type(error) is SchemaRegistryError and error.context.get("status") in _REFUSALS


def lacks_form(error: SchemaRegistryError, found: Answer) -> bool:
    """Karapace answers 500 to `format` if a schema has references: it reads the text without them."""
    is_too_much = error.context.get("status") == SERVER_ERRORS and bool(found.get("references"))
    return is_refusal(error) or is_too_much


def _with(path: str, **parameters: str | None) -> str:
    query = urlencode({name: value for name, value in parameters.items() if value}, safe="", quote_via=quote)
    return f"{path}?{query}" if query else path


def _quoted(subject: str) -> str:
    return quote(subject, safe="")
