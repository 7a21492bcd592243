"""The latest or last known schemas of a topic's subjects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from archiver.config.model import SchemaRegistrySection
from archiver.errors import BadSchema, SchemaRegistryUnavailable, UnknownSubject
from archiver.schemas.registry.client import client_of
from archiver.schemas.registry.ids import RegistryIds, identity_of
from archiver.schemas.registry.schema_kind import NumberedSchema, SchemaKind, SchemaT
from archiver.schemas.registry.settings import schema_registry_settings
from catalog.model import SchemaIdentity
from catalog.registry.last_known import KnownSchemas

NOTHING: Final = KnownSchemas()


class Subjects:
    """`remembered` are the last known schemas, `news` further answers.

    `down` is the error if the registry didn't answer, or deleted a schema.
    """

    def __init__(self, section: SchemaRegistrySection, remembered: KnownSchemas = NOTHING) -> None:
        self._settings = schema_registry_settings(section)
        self._remembered = remembered
        self._found: dict[str, NumberedSchema] = {}
        self._versions: dict[str, tuple[NumberedSchema, ...]] = {}
        self.down: SchemaRegistryUnavailable | UnknownSubject | BadSchema | None = None

    def latest(self, subject: str, kind: SchemaKind[SchemaT]) -> SchemaT:
        """Or the last known one.

        Raises SchemaRegistryUnavailable or UnknownSubject if none is known, and other subclasses of
        SchemaRegistryError.
        """
        last_known = self._last_known(subject, kind)
        schemas = client_of(self._settings).schemas(kind)
        try:
            latest = self._found[subject] = schemas.latest(subject)
        except SchemaRegistryUnavailable as error:
            self.down = error
            if last_known is None:
                raise SchemaRegistryUnavailable(
                    f"nothing is known yet of the topic's schema, and {error.message}", subject=subject, **error.context
                ) from error
            return last_known
        except BadSchema as error:
            if last_known is None or error.context.get("schema_id") != last_known.id:
                raise
            self.down = BadSchema(
                f"the subject's latest schema can't be read from the schema registry any more ({error.message}), and"
                " what was read before is used: register again what it refers to",
                **{"subject": subject, **error.context},
            )
            return last_known
        except UnknownSubject as error:
            deleted = last_known or schemas.deleted(subject)
            if deleted is None:
                raise
            if last_known is None:
                self._found[subject] = deleted
            self.down = UnknownSubject(
                "the subject was deleted in the schema registry, and the latest schema that it had is used: register"
                " its schema again, or set `subject` to the one that took its place",
                schema_id=deleted.id,
                **error.context,
            )
            return deleted
        return latest

    def versions(self, subject: str, kind: SchemaKind[SchemaT], most: int) -> tuple[SchemaT, ...]:
        """The latest first; from memory if the registry is down. Raises as `latest`."""
        latest = self.latest(subject, kind)
        older: tuple[SchemaT, ...] = ()
        if not isinstance(self.down, SchemaRegistryUnavailable):
            try:
                older = client_of(self._settings).schemas(kind).versions(subject, most)
            except SchemaRegistryUnavailable as error:
                self.down = error
        if not older:
            remembered = self.ids(subject, kind).kept(self._remembered.schemas)
            numbered = ((schema.id, schema) for schema in remembered)
            older = tuple(
                schema
                for _, schema in sorted(
                    ((number, schema) for number, schema in numbered if isinstance(number, int)),
                    key=_number,
                    reverse=True,
                )
            )
        self._versions[subject] = older
        return (latest, *(schema for schema in older if schema.id != latest.id))[:most]

    def _last_known(self, subject: str, kind: SchemaKind[SchemaT]) -> SchemaT | None:
        identity = self._remembered.subjects.get(subject)
        return None if identity is None else kind.from_bytes(identity.number, self._remembered.schemas[identity])

    def ids(self, subject: str | None, kind: SchemaKind[SchemaT]) -> RegistryIds[SchemaT]:
        """For tasks. One attempt only while the registry is down."""
        is_down = isinstance(self.down, SchemaRegistryUnavailable)
        settings = replace(self._settings, attempts=1) if is_down else self._settings
        return RegistryIds(settings=settings, kind=kind, subject=subject)

    @property
    def schemas(self) -> Mapping[SchemaIdentity, bytes]:
        return {**self._remembered.schemas, **self._schemas}

    @property
    def registry_name(self) -> str:
        return self._settings.name

    @property
    def news(self) -> KnownSchemas:
        subjects = {subject: identity_of(schema.id, subject) for subject, schema in self._found.items()}
        remembered = self._remembered
        return KnownSchemas(
            schemas={identity: data for identity, data in self._schemas.items() if identity not in remembered.schemas},
            subjects={name: current for name, current in subjects.items() if remembered.subjects.get(name) != current},
        )

    @property
    def _schemas(self) -> dict[SchemaIdentity, bytes]:
        schemas = {identity_of(schema.id, subject): schema for subject, schema in self._found.items()}
        for subject, versions in self._versions.items():
            schemas |= {identity_of(schema.id, subject): schema for schema in versions}
        return {identity: schema.to_bytes() for identity, schema in schemas.items()}


def _number(numbered: tuple[int, NumberedSchema]) -> int:
    return numbered[0]
