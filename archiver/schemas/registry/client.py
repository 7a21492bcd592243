"""A client of a schema registry with Confluent's REST API: gets schemas by id, GUID and subject, and caches them.

The schema of an id never changes within its context, so a client caches it for as long as it lives. It asks again for
the latest schema of a subject.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeAlias
from uuid import UUID

from archiver.errors import BadSchema, SchemaRegistryError, UnknownSubject
from archiver.schemas.protobuf.registered_schema import (
    CompiledSchema,
    RegisteredSchema,
    compile_registered,
    is_descriptor,
)
from archiver.schemas.registry.contexts import context_of
from archiver.schemas.registry.requests import SERIALIZED, Answer, RegistryRequests, is_refusal
from archiver.schemas.registry.settings import SchemaRegistrySettings
from catalog.model import SchemaNumber

__all__ = ["SchemaRegistry", "SchemaRegistrySettings", "client_of"]

MOST_REFERENCES: Final = 1_000

_Asked: TypeAlias = tuple[SchemaNumber, str | None]
"""An id or GUID, and the subject that it was looked up for."""


class SchemaRegistry:
    """A client of one schema registry. Threads may share it; they wait for each other."""

    def __init__(self, settings: SchemaRegistrySettings) -> None:
        self._settings = settings
        self._requests = RegistryRequests(settings)
        self._lock = threading.Lock()
        self._known: dict[_Asked, CompiledSchema] = {}
        self._missing: dict[_Asked, tuple[float, BadSchema | None]] = {}
        self._newest: dict[str, tuple[float, CompiledSchema]] = {}
        self._versions: dict[tuple[str, int, str, str | None], Answer] = {}
        self._compiled: dict[tuple[SchemaNumber, str, str], CompiledSchema] = {}

    def by_id(self, schema_id: SchemaNumber, subject: str | None = None) -> CompiledSchema | None:
        """The schema of an id or GUID. None if the schema registry has no such schema, or it isn't Protobuf.

        An id counts within the context of the subject. Without one it is looked up in the context of the url. Raises
        SchemaRegistryUnavailable, SchemaRegistryDenied, SchemaRegistryError, BadSchema.
        """
        with self._lock:
            return self._by_id(schema_id, subject)

    def _by_id(self, schema_id: SchemaNumber, subject: str | None) -> CompiledSchema | None:
        asked = schema_id, subject
        if asked in self._known:
            return self._known[asked]
        until, bad = self._missing.get(asked, (0.0, None))
        if until > time.monotonic():
            if bad is not None:
                raise bad
            return None
        found = self._ask(schema_id, subject)
        bad = None
        if found is not None and _is_protobuf(found):
            try:
                self._known[asked] = self._compile(schema_id, found, subject)
            except BadSchema as error:
                bad = error
            else:
                return self._known[asked]
        self._missing[asked] = (time.monotonic() + self._settings.forget_after, bad)
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

    def deleted(self, subject: str) -> CompiledSchema | None:
        """The latest schema of a subject that was deleted softly. None if there is none. Raises what `by_id` raises."""
        with self._lock:
            found = self._requests.latest_deleted(subject)
            return None if found is None else self._of_subject(subject, found)

    def _latest(self, subject: str) -> CompiledSchema:
        found = self._requests.latest(subject)
        if found is None:
            raise UnknownSubject(
                "the schema registry has no such subject: register its schema, or correct `subject`,"
                " `subject_strategy` or the url",
                subject=subject,
                url=self._settings.urls[0],
            )
        return self._of_subject(subject, found)

    def _of_subject(self, subject: str, found: Answer) -> CompiledSchema:
        schema_id = int(found["id"])
        if not _is_protobuf(found):
            kind = found.get("schemaType", "AVRO")
            raise BadSchema(f"the subject's schema is {kind}, not Protobuf", subject=subject, schema_id=schema_id)
        self._known[schema_id, subject] = self._compile(schema_id, found, subject)
        return self._known[schema_id, subject]

    def _ask(self, schema_id: SchemaNumber, subject: str | None, form: str | None = None) -> Answer | None:
        if isinstance(schema_id, UUID):
            return self._requests.by_guid(schema_id, form)
        return self._requests.by_id(schema_id, subject, form)

    def _compile(self, schema_id: SchemaNumber, found: Answer, subject: str | None) -> CompiledSchema:
        """Compile a schema, once for all subjects of a context that have it."""
        context = context_of(subject)
        key = schema_id, context, str(found["schema"])
        if key not in self._compiled:
            try:
                self._compiled[key] = self._compile_once(schema_id, found, context)
            except BadSchema:
                serialized = self._serialized(schema_id, subject)
                if serialized is None:
                    raise
                self._compiled[key] = self._compile_once(schema_id, serialized, context, SERIALIZED)
        return self._compiled[key]

    def _serialized(self, schema_id: SchemaNumber, subject: str | None) -> Answer | None:
        """The schema as a descriptor: registries print texts that they read themselves, and protoc does not."""
        try:
            answer = self._ask(schema_id, subject, SERIALIZED)
        except SchemaRegistryError as error:
            if not is_refusal(error):
                raise
            return None
        return answer if answer is not None and is_descriptor(str(answer["schema"])) else None

    def _compile_once(
        self, schema_id: SchemaNumber, found: Answer, context: str, form: str | None = None
    ) -> CompiledSchema:
        parent = context_of(found.get("subject")) or context
        references = dict(self._references(found, parent, form, is_guid=isinstance(schema_id, UUID)))
        return compile_registered(RegisteredSchema(id=schema_id, text=str(found["schema"]), references=references))

    def _references(self, found: Answer, context: str, form: str | None, *, is_guid: bool) -> Iterator[tuple[str, str]]:
        """The names and texts of all schemas that a schema refers to, directly or not.

        They are in the context of the schema that names them. A GUID may be that of a schema in another context: only
        the names of its own messages are read, so references in the default context will do.
        """
        seen: set[str] = set()
        pending = [(reference, context) for reference in found.get("references") or ()]
        while pending:
            reference, parent = pending.pop()
            name = str(reference["name"])
            if name in seen:
                continue
            if len(seen) >= MOST_REFERENCES:
                raise BadSchema("a schema refers to too many others", limit=MOST_REFERENCES)
            seen.add(name)
            subject, version = str(reference["subject"]), int(reference["version"])
            target = self._version(subject, version, parent, form)
            if target is None and is_guid and parent:
                target = self._version(subject, version, "", form)
            if target is None:
                raise BadSchema(
                    "a schema refers to one that the schema registry doesn't have", subject=subject, version=version
                )
            inner = context_of(subject) or parent
            pending.extend((each, inner) for each in target.get("references") or ())
            yield name, str(target["schema"])

    def _version(self, subject: str, version: int, context: str, form: str | None) -> Answer | None:
        key = subject, version, context, form
        if key not in self._versions:
            found = self._requests.version(subject, version, context, form)
            if found is None:
                return None
            self._versions[key] = found
        return self._versions[key]


@lru_cache(maxsize=8)
def client_of(settings: SchemaRegistrySettings) -> SchemaRegistry:
    """The client for these settings. All callers in a process share it."""
    return SchemaRegistry(settings)


def _is_protobuf(found: Answer) -> bool:
    return bool(found.get("schemaType", "AVRO") == "PROTOBUF")
