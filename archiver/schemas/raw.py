"""Raw bytes as a format: no schemas, no envelopes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from archiver.config.formats import RawFormat
from archiver.errors import ConfigError
from archiver.schemas.format_settings import ProposedFile, SchemaPlace
from archiver.schemas.registry.envelope import EnvelopeReader
from schema_mapping.value_format import DeclaredSchema


@dataclass(frozen=True, slots=True)
class RawSettings:
    name: str = "raw"
    suffixes: tuple[str, ...] = ()
    kind: None = None
    registered_section: None = None
    inference: None = None

    def source_schema(self, settings: RawFormat, place: SchemaPlace) -> None: ...

    def envelope_reader(
        self, settings: RawFormat, schema: DeclaredSchema | None, place: SchemaPlace
    ) -> EnvelopeReader | None: ...

    def next_schema(self, file: ProposedFile, settings: RawFormat | None) -> DeclaredSchema:  # noqa: ARG002
        """Raises ConfigError."""
        raise ConfigError("raw keys and values have no schema", file=str(file.path))


RAW_SETTINGS: Final = RawSettings()
