"""The latest schemas of a topic's subjects, from the schema registry. While it is down, the last known ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from archiver.config.model import SchemaRegistrySection
from archiver.errors import SchemaRegistryUnavailable
from archiver.schemas.registered_schema import CompiledSchema
from archiver.schemas.schema_ids import SchemaRegistryIds, identity_of
from archiver.schemas.schema_registry import client_of
from archiver.schemas.schema_registry_settings import schema_registry_settings
from catalog.model import SchemaIdentity
from catalog.registry.last_known import KnownSchemas

NOTHING: Final = KnownSchemas()


class Subjects:
    """The latest schemas of a topic's subjects, and where they came from.

    `remembered` has the last known schemas. `down` is the error if the schema registry didn't answer, else None. `news`
    has the answers that aren't in `remembered`.
    """

    def __init__(self, section: SchemaRegistrySection, remembered: KnownSchemas = NOTHING) -> None:
        self._settings = schema_registry_settings(section)
        self._remembered = remembered
        self._found: dict[str, CompiledSchema] = {}
        self.down: SchemaRegistryUnavailable | None = None

    def latest(self, subject: str) -> CompiledSchema:
        """The latest schema of a subject, or the last known one while the schema registry is down.

        Raises SchemaRegistryUnavailable if the schema registry is down and no schema of the subject is known, and the
        other subclasses of SchemaRegistryError.
        """
        try:
            self._found[subject] = client_of(self._settings).latest(subject)
        except SchemaRegistryUnavailable as error:
            self.down = error
            known = self._remembered.subjects.get(subject)
            if known is None:
                raise SchemaRegistryUnavailable(
                    f"nothing is known yet of the topic's schema, and {error.message}", subject=subject, **error.context
                ) from error
            return CompiledSchema.from_bytes(known.number, self._remembered.schemas[known])
        return self._found[subject]

    def ids(self, subject: str | None) -> SchemaRegistryIds:
        """The meaning of schema ids in records of the subject, for tasks. They needn't ask for what is known here.

        While the schema registry is down, they make one attempt only.
        """
        settings = self._settings if self.down is None else replace(self._settings, attempts=1)
        ids = SchemaRegistryIds(settings=settings, subject=subject)
        return ids.with_schemas({**self._remembered.schemas, **self._schemas})

    @property
    def registry_name(self) -> str:
        """The name of the schema registry."""
        return self._settings.name

    @property
    def news(self) -> KnownSchemas:
        """The schemas and subjects that the schema registry gave and that aren't in `remembered`."""
        subjects = {subject: identity_of(schema.id, subject) for subject, schema in self._found.items()}
        known = self._remembered
        return KnownSchemas(
            schemas={each: files for each, files in self._schemas.items() if each not in known.schemas},
            subjects={name: each for name, each in subjects.items() if known.subjects.get(name) != each},
        )

    @property
    def _schemas(self) -> dict[SchemaIdentity, bytes]:
        return {identity_of(schema.id, subject): schema.to_bytes() for subject, schema in self._found.items()}
