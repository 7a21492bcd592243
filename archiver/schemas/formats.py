"""The formats of keys and values. A new format is one line here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from archiver.config.formats import FormatSection
from archiver.errors import ConfigError
from archiver.schemas.avro.settings import AVRO_SETTINGS
from archiver.schemas.format_settings import FormatSettings, ProposedFile, SchemaInference, SchemaPlace
from archiver.schemas.json.settings import JSON_SETTINGS
from archiver.schemas.protobuf.settings import PROTOBUF_SETTINGS
from archiver.schemas.raw import RAW_SETTINGS
from archiver.schemas.registry.envelope import EnvelopeReader
from schema_mapping.value_format import DeclaredSchema


@dataclass(frozen=True, slots=True)
class Formats:
    """Other file endings belong to the first format."""

    entries: tuple[FormatSettings[Any], ...]

    def of(self, settings: FormatSection) -> FormatSettings[Any]:
        """Raises ConfigError."""
        for entry in self.entries:
            if entry.name == settings.format:
                return entry
        raise ConfigError(f"no format of keys and values is called {settings.format!r}", known=list(self.names))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.entries)

    @property
    def registered(self) -> tuple[FormatSettings[Any], ...]:
        return tuple(entry for entry in self.entries if entry.kind is not None)

    def source_schema(self, settings: FormatSection, place: SchemaPlace) -> DeclaredSchema | None:
        return self.of(settings).source_schema(settings, place)

    def envelope_reader(
        self, settings: FormatSection, schema: DeclaredSchema | None, place: SchemaPlace
    ) -> EnvelopeReader | None:
        return self.of(settings).envelope_reader(settings, schema, place)

    def next_schema(self, file: ProposedFile, settings: FormatSection | None = None) -> DeclaredSchema:
        """Without a schema, the file's ending decides the format."""
        if settings is not None and settings.has_schema:
            return self.of(settings).next_schema(file, settings)
        return self._of_file(file.path).next_schema(file, None)

    def inference_of(self, settings: FormatSection | None) -> SchemaInference:
        """Without a schema, of the first format that can infer.

        Raises ConfigError if schemas are in a schema registry, or can't be inferred.
        """
        if settings is None or not settings.has_schema:
            return next(entry.inference for entry in self.entries if entry.inference is not None)
        if settings.has_envelopes:
            raise ConfigError("the schema registry has the schemas: there is none to infer")
        inference = self.of(settings).inference
        if inference is None:
            raise ConfigError(f"schemas can't be inferred for {settings.format}: its values don't name their fields")
        return inference

    def _of_file(self, path: Path) -> FormatSettings[Any]:
        return next((entry for entry in self.entries if path.suffix in entry.suffixes), self.entries[0])


_ENTRIES: Final[tuple[FormatSettings[Any], ...]] = (PROTOBUF_SETTINGS, AVRO_SETTINGS, JSON_SETTINGS, RAW_SETTINGS)
FORMATS: Final = Formats(_ENTRIES)
"""The formats of the archiver."""
