"""The newest schemas of a topic's subjects: from the schema registry, or while it is down those remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from archiver.config.model import SchemaRegistrySection
from archiver.errors import SchemaRegistryUnavailable
from archiver.schemas.registered import CompiledSchema
from archiver.schemas.registry import client_of
from archiver.schemas.schema_ids import SchemaRegistryIds
from archiver.schemas.settings import schema_registry_settings
from catalog.registry.last_known import KnownSchemas

NOTHING: Final = KnownSchemas()


class Subjects:
    """Gives a topic's latest schemas once each, and keeps the account of where they came from.

    `down` is why the schema registry couldn't be asked, None where it answered. `news` is what it said that isn't
    remembered.
    """

    def __init__(self, section: SchemaRegistrySection, remembered: KnownSchemas = NOTHING) -> None:
        self._settings = schema_registry_settings(section)
        self._remembered = remembered
        self._found: dict[str, CompiledSchema] = {}
        self.down: SchemaRegistryUnavailable | None = None

    def latest(self, subject: str) -> CompiledSchema:
        """The subject's newest schema, as far as is known.

        Raises SchemaRegistryUnavailable where the schema registry is down and the subject was never asked for before,
        else the other leaves of SchemaRegistryError.
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
            return CompiledSchema.from_bytes(known, self._remembered.schemas[known])
        return self._found[subject]

    @property
    def ids(self) -> SchemaRegistryIds:
        """The meaning of schema ids, for tasks: they needn't ask for what is known here, nor be patient in vain."""
        found = {schema.id: schema.to_bytes() for schema in self._found.values()}
        settings = self._settings if self.down is None else replace(self._settings, attempts=1)
        return SchemaRegistryIds(settings=settings).knowing({**self._remembered.schemas, **found})

    @property
    def news(self) -> KnownSchemas:
        """What the schema registry said just now and isn't remembered."""
        subjects: Mapping[str, int] = {subject: schema.id for subject, schema in self._found.items()}
        return KnownSchemas(
            schemas={
                schema.id: schema.to_bytes()
                for schema in self._found.values()
                if schema.id not in self._remembered.schemas
            },
            subjects={name: each for name, each in subjects.items() if self._remembered.subjects.get(name) != each},
        )
