"""Requests for schemas: by id, by GUID, by subject. Knows how registries differ in what they offer.

Confluent and Redpanda have contexts and look an id up in the context of the `subject` parameter. Confluent has GUIDs.
Apicurio and Karapace have neither: they ignore the parameter, and `:.team:` is a part of a subject's name to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode
from uuid import UUID

from archiver.errors import SchemaRegistryDenied, SchemaRegistryError
from archiver.schemas.registry.contexts import context_of, in_context
from archiver.schemas.registry.http import RegistryHttp
from archiver.schemas.registry.settings import SchemaRegistrySettings

Answer: TypeAlias = Mapping[str, Any]

_REFUSALS: Final = frozenset({400, 404, 405, 406, 422, 501})
"""Statuses of a server that doesn't have a path, or doesn't take a parameter."""


class RegistryRequests:
    """Requests to one schema registry. Two threads must not use it at once.

    The methods return None if the registry has no such schema. They raise what `RegistryHttp` raises.
    """

    def __init__(self, settings: SchemaRegistrySettings) -> None:
        self._http = RegistryHttp(settings)
        self._contexts: frozenset[str] = frozenset()

    def by_id(self, schema_id: int, subject: str | None, form: str | None = None) -> Answer | None:
        """The schema with this id in the context of the subject.

        In a named context Confluent returns a subject's own schemas only; the context alone finds the remaining ones.
        An id is never looked up in another context, where it is the number of another schema. Registries
        that know a `form` return the schema in it, the remaining ones return its text.
        """
        path, context = f"/schemas/ids/{schema_id}", context_of(subject)
        refusal: SchemaRegistryError | None = None
        for name in dict.fromkeys(filter(None, (subject, context))):
            try:
                answer = self._http.get(_with(path, subject=name, format=form))
            except SchemaRegistryError as error:
                if not is_refusal(error):
                    raise
                refusal = error
            else:
                if answer is not None:
                    return answer
        if not context or not self._has_context(context):
            return self._http.get(_with(path, format=form))
        if refusal is not None:
            raise refusal
        return None

    def by_guid(self, guid: UUID, form: str | None = None) -> Answer | None:
        """The schema with this GUID, which is the same in all contexts. None if the registry has no GUIDs, too."""
        try:
            return self._http.get(_with(f"/schemas/guids/{guid}", format=form))
        except SchemaRegistryError as error:
            if not is_refusal(error) or not self._is_registry():
                raise
            return None

    def latest(self, subject: str) -> Answer | None:
        """The latest version of a subject."""
        return self._http.get(f"/subjects/{_quoted(subject)}/versions/latest")

    def latest_deleted(self, subject: str) -> Answer | None:
        """The latest version of a subject of which all were deleted softly."""
        path = f"/subjects/{_quoted(subject)}/versions"
        try:
            versions = self._http.get_list(_with(path, deleted="true"))
        except SchemaRegistryError as error:
            if not is_refusal(error):
                raise
            return None
        return self._http.get(_with(f"{path}/{max(map(int, versions))}", deleted="true")) if versions else None

    def versions(self, subject: str) -> list[int]:
        """The numbers of all versions of a subject, ascending, those included that were deleted softly."""
        path = f"/subjects/{_quoted(subject)}/versions"
        try:
            numbers = self._http.get_list(_with(path, deleted="true"))
        except SchemaRegistryError as error:
            if not is_refusal(error):
                raise
            numbers = self._http.get_list(path)
        return sorted(map(int, numbers or ()))

    def version(self, subject: str, version: int, context: str, form: str | None = None) -> Answer | None:
        """A version that a schema in `context` refers to, even if it was deleted softly."""
        name = in_context(subject, context)
        answer = self._version(name, version, form)
        if answer is None and name != subject and not self._has_context(context):
            return self._version(subject, version, form)
        return answer

    def _version(self, subject: str, version: int, form: str | None) -> Answer | None:
        path = f"/subjects/{_quoted(subject)}/versions/{version}"
        try:
            answer = self._http.get(_with(path, deleted="true", format=form))
        except SchemaRegistryError as error:
            if not is_refusal(error):
                raise
            answer = None
        return self._http.get(_with(path, format=form)) if answer is None else answer

    def _has_context(self, context: str) -> bool:
        """Whether the registry has this context. Assume so if the credentials have no right to list contexts."""
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
        """Whether the url is that of a registry. If so, it is not the url's fault that a path isn't there."""
        try:
            return self._http.get_list("/schemas/types") is not None
        except SchemaRegistryError as error:
            if not is_refusal(error):
                raise
            return False


def is_refusal(error: SchemaRegistryError) -> bool:
    """Whether the server doesn't have the path, or doesn't take a parameter."""
    return type(error) is SchemaRegistryError and error.context.get("status") in _REFUSALS


def _with(path: str, **parameters: str | None) -> str:
    """The path with those of the parameters that are set."""
    query = urlencode({name: value for name, value in parameters.items() if value}, safe="", quote_via=quote)
    return f"{path}?{query}" if query else path


def _quoted(subject: str) -> str:
    return quote(subject, safe="")
