"""A client of Confluent's REST API that caches schemas.

The schema of an id never changes within its context; a subject's latest one is requested again.
"""

from __future__ import annotations

import threading
import time
from functools import lru_cache
from typing import Any, Generic, TypeAlias, cast
from uuid import UUID

from archiver.errors import BadSchema, SchemaRegistryError, UnknownSubject
from archiver.schemas.registry.contexts import context_of
from archiver.schemas.registry.references import SchemaReferences
from archiver.schemas.registry.requests import Answer, RegistryRequests, lacks_form
from archiver.schemas.registry.schema_kind import RegisteredSchema, SchemaKind, SchemaT, number_context
from archiver.schemas.registry.settings import SchemaRegistrySettings
from catalog.model import SchemaNumber

_Asked: TypeAlias = tuple[SchemaNumber, str | None]
"""An id or GUID, and the subject that it was looked up for."""


class SchemaRegistry:
    """Thread-safe, by one lock."""

    def __init__(self, settings: SchemaRegistrySettings) -> None:
        self._settings = settings
        self._requests = RegistryRequests(settings)
        self._references = SchemaReferences(self._requests)
        self._lock = threading.RLock()
        self._kinds: dict[SchemaKind[Any], SchemasOfKind[Any]] = {}

    def schemas(self, kind: SchemaKind[SchemaT]) -> SchemasOfKind[SchemaT]:
        with self._lock:
            if kind not in self._kinds:
                self._kinds[kind] = SchemasOfKind(kind, self._settings, self._requests, self._references, self._lock)
            return cast("SchemasOfKind[SchemaT]", self._kinds[kind])


class SchemasOfKind(Generic[SchemaT]):
    """Thread-safe."""

    def __init__(
        self,
        kind: SchemaKind[SchemaT],
        settings: SchemaRegistrySettings,
        requests: RegistryRequests,
        references: SchemaReferences,
        lock: threading.RLock,
    ) -> None:
        self._kind = kind
        self._settings = settings
        self._requests = requests
        self._references = references
        self._lock = lock
        self._known: dict[_Asked, SchemaT] = {}
        self._missing: dict[_Asked, tuple[float, BadSchema | None]] = {}
        self._newest: dict[str, tuple[float, SchemaT]] = {}
        self._of_version: dict[tuple[str, int], SchemaT] = {}
        self._read: dict[tuple[SchemaNumber, str, str], SchemaT] = {}

    def by_id(self, schema_id: SchemaNumber, subject: str | None = None) -> SchemaT | None:
        """In the context of the subject, else of the url. None if unknown or of another kind.

        Raises SchemaRegistryUnavailable, SchemaRegistryDenied, SchemaRegistryError, BadSchema.
        """
        with self._lock:
            return self._by_id(schema_id, subject)

    def _by_id(self, schema_id: SchemaNumber, subject: str | None) -> SchemaT | None:
        if (replacement := self._kind.replacement(schema_id)) is not None:
            return replacement
        asked = schema_id, subject
        if asked in self._known:
            return self._known[asked]
        until, bad = self._missing.get(asked, (0.0, None))
        if until > time.monotonic():
            if bad is not None:
                raise bad
            return None
        answer = self._ask(schema_id, subject)
        bad = None
        if answer is not None and _kind_of(answer) == self._kind.name:
            try:
                self._known[asked] = self._schema(schema_id, answer, subject)
            except BadSchema as error:
                bad = error
            else:
                return self._known[asked]
        self._missing[asked] = (time.monotonic() + self._settings.forget_after, bad)
        if bad is not None:
            raise bad
        return None

    def latest(self, subject: str) -> SchemaT:
        """Raises UnknownSubject, and as `by_id`."""
        with self._lock:
            until, newest = self._newest.get(subject, (0.0, None))
            if newest is None or until <= time.monotonic():
                newest = self._latest(subject)
                self._newest[subject] = (time.monotonic() + self._settings.latest_ttl, newest)
            return newest

    def versions(self, subject: str, most: int) -> tuple[SchemaT, ...]:
        """The newest first, without other kinds and unreadable ones. Raises as `by_id`, except BadSchema."""
        with self._lock:
            numbers = self._requests.versions(subject)[: -most - 1 : -1]
            schemas = [self._version(subject, number) for number in numbers]
        return tuple(schema for schema in schemas if schema is not None)

    def _version(self, subject: str, number: int) -> SchemaT | None:
        version = subject, number
        if version not in self._of_version:
            answer = self._requests.version(subject, number, context_of(subject))
            if answer is None or _kind_of(answer) != self._kind.name:
                return None
            try:
                self._of_version[version] = self._of_subject(subject, answer)
            except BadSchema:
                return None
        return self._of_version[version]

    def deleted(self, subject: str) -> SchemaT | None:
        """The latest softly deleted schema. Raises as `by_id`."""
        with self._lock:
            answer = self._requests.latest_deleted(subject)
            return None if answer is None else self._of_subject(subject, answer)

    def _latest(self, subject: str) -> SchemaT:
        answer = self._requests.latest(subject)
        if answer is None:
            raise UnknownSubject(
                "the schema registry has no such subject: register its schema, or correct `subject`,"
                " `subject_strategy` or the url",
                subject=subject,
                url=self._settings.urls[0],
            )
        return self._of_subject(subject, answer)

    def _of_subject(self, subject: str, found: Answer) -> SchemaT:
        schema_id, kind = int(found["id"]), _kind_of(found)
        if kind != self._kind.name:
            raise BadSchema(
                f"the subject's schema is {kind}, not {self._kind.label}", subject=subject, schema_id=schema_id
            )
        if (replacement := self._kind.replacement(schema_id)) is not None:
            return replacement
        self._known[schema_id, subject] = self._schema(schema_id, found, subject)
        return self._known[schema_id, subject]

    def _ask(self, schema_id: SchemaNumber, subject: str | None, form: str | None = None) -> Answer | None:
        if isinstance(schema_id, UUID):
            return self._requests.by_guid(schema_id, form)
        return self._requests.by_id(schema_id, subject, form)

    def _schema(self, schema_id: SchemaNumber, found: Answer, subject: str | None) -> SchemaT:
        context = context_of(subject)
        key = schema_id, context, str(found["schema"])
        if key not in self._read:
            try:
                self._read[key] = self._read_somehow(schema_id, found, subject)
            except BadSchema as error:
                of = subject or found.get("subject")
                more = {"referred_by" if "subject" in error.context else "subject": of} if of else {}
                raise BadSchema(error.message, **{**number_context(schema_id), **more, **error.context}) from error
        return self._read[key]

    def _read_somehow(self, schema_id: SchemaNumber, found: Answer, subject: str | None) -> SchemaT:
        context = context_of(subject)
        try:
            return self._read_once(schema_id, found, context)
        except BadSchema:
            if self._kind.other_form is None:
                raise
        form = self._kind.other_form
        if self._kind.is_other_form(str(found["schema"])):
            schema = self._in_other_form(schema_id, found, subject, form)
            return self._read_once(schema_id, found, context, leniently=True) if schema is None else schema
        try:  # before the other form, in which Karapace leaves out options such as `packed`
            return self._read_once(schema_id, found, context, leniently=True)
        except BadSchema:
            schema = self._in_other_form(schema_id, found, subject, form)
            if schema is None:
                raise
            return schema

    def _in_other_form(self, schema_id: SchemaNumber, found: Answer, subject: str | None, form: str) -> SchemaT | None:
        """Some registries print texts that only they can read."""
        try:
            answer = self._ask(schema_id, subject, form)
            if answer is not None and self._kind.is_other_form(str(answer["schema"])):
                return self._read_once(schema_id, answer, context_of(subject), form)
        except BadSchema:
            pass
        except SchemaRegistryError as error:
            if not lacks_form(error, found):
                raise
        return None

    def _read_once(
        self, schema_id: SchemaNumber, found: Answer, context: str, form: str | None = None, *, leniently: bool = False
    ) -> SchemaT:
        parent = context_of(found.get("subject")) or context
        references = dict(self._references.texts(found, parent, form, is_guid=isinstance(schema_id, UUID)))
        schema = RegisteredSchema(id=schema_id, text=str(found["schema"]), references=references)
        return self._kind.read(schema, leniently=leniently)


@lru_cache(maxsize=8)
def client_of(settings: SchemaRegistrySettings) -> SchemaRegistry:
    """The process's client for these settings."""
    return SchemaRegistry(settings)


def _kind_of(found: Answer) -> str:
    return str(found.get("schemaType", "AVRO"))
