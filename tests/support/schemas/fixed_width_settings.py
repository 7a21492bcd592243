"""Settings and schemas of fixed-width records: JSON objects of names and types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from archiver.config.formats import ColumnLimits, FormatSection
from archiver.errors import BadSchema, ConfigError
from archiver.schemas.format_settings import ProposedFile, SchemaPlace
from archiver.schemas.registry.envelope import (
    UNKNOWN_SCHEMA_ID,
    EnvelopeReader,
    EnvelopeVerdict,
    RegistryEnvelopes,
    head_bytes,
)
from archiver.schemas.registry.ids import RegistryIds
from archiver.schemas.registry.schema_kind import RegisteredSchema, number_context
from archiver.schemas.registry.value_heads import Numbers, ValueHeads
from catalog.model import SchemaIdentity, SchemaNumber
from schema_mapping.value_format import DeclaredSchema
from tests.support.schemas.fixed_width import FORMAT, RECORD, FixedSchema

KIND: Final = "FIXED"
_KEPT: Final = b"fixed:"


class FixedWidthSection(FormatSection):
    """Without `file`, the subject `TOPIC-value`."""

    format: Literal["fixed_width"] = FORMAT
    file: Path | None = None

    @property
    def registry_setting(self) -> str | None:
        return None if self.file else 'format = "fixed_width"'

    @property
    def column_limits(self) -> ColumnLimits:
        return ColumnLimits(depth=1, columns=100)

    def anchored(self, folder: Path) -> FixedWidthSection:
        return self if self.file is None else self.model_copy(update={"file": folder / self.file})


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredRecord:
    id: SchemaNumber
    text: str

    @property
    def schema(self) -> FixedSchema:
        return FixedSchema.of(**json.loads(self.text))

    def to_bytes(self) -> bytes:
        return _KEPT + self.text.encode()


@dataclass(frozen=True, slots=True)
class FixedWidthSchemas:
    name: str = KIND
    label: str = "fixed width"
    other_form: None = None

    def is_other_form(self, text: str) -> bool:
        return False

    def replacement(self, number: SchemaNumber) -> None:
        return None

    def read(self, schema: RegisteredSchema, *, leniently: bool = False) -> RegisteredRecord:
        try:
            json.loads(schema.text)
        except ValueError as error:
            raise BadSchema("the schema is no JSON", **number_context(schema.id)) from error
        return RegisteredRecord(id=schema.id, text=schema.text)

    def from_bytes(self, number: SchemaNumber, data: bytes) -> RegisteredRecord | None:
        return RegisteredRecord(id=number, text=data[len(_KEPT) :].decode()) if data.startswith(_KEPT) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedWidthChoice:
    ids: RegistryIds[RegisteredRecord]
    numbers: tuple[SchemaNumber, ...] = ()
    messages: tuple[str, ...] = (RECORD,)
    min_bytes: int = 0

    def verdicts(
        self, schema_id: SchemaNumber, rows: Numbers, column: ValueHeads
    ) -> Iterator[tuple[Numbers, EnvelopeVerdict]]:
        has_schema = schema_id in self.numbers or self.ids.schema(schema_id) is not None
        length = head_bytes(schema_id)
        yield rows, EnvelopeVerdict(length, None, 0) if has_schema else EnvelopeVerdict(length, UNKNOWN_SCHEMA_ID)

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        return self.ids.to_keep(set(schema_ids) - {*self.numbers})

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> FixedWidthChoice:
        return replace(self, numbers=(*self.numbers, *(schema.id for schema in self.ids.kept(schemas))))


@dataclass(frozen=True, slots=True)
class FixedWidthSettings:
    name: str = FORMAT
    suffixes: tuple[str, ...] = (".fixed",)
    kind: FixedWidthSchemas = FixedWidthSchemas()
    registered_section: str = '{ format = "fixed_width" }'
    inference: None = None

    def source_schema(self, settings: FixedWidthSection, place: SchemaPlace) -> FixedSchema:
        if settings.file is not None:
            return _read(settings.file)
        assert place.subjects is not None
        return place.subjects.latest(f"{place.topic}-{place.part}", self.kind).schema

    def envelope_reader(
        self, settings: FixedWidthSection, schema: DeclaredSchema | None, place: SchemaPlace
    ) -> EnvelopeReader | None:
        if not settings.has_envelopes:
            return None
        assert place.subjects is not None
        ids = place.subjects.ids(f"{place.topic}-{place.part}", self.kind)
        choice = FixedWidthChoice(ids=ids).with_schemas(place.subjects.schemas)
        return RegistryEnvelopes(choice=choice, header=place.header)

    def next_schema(self, file: ProposedFile, settings: FixedWidthSection | None) -> FixedSchema:
        return _read(file.path)


def _read(file: Path) -> FixedSchema:
    try:
        return FixedSchema.of(**json.loads(file.read_text()))
    except (OSError, ValueError) as error:
        raise ConfigError("the schema file cannot be read", file=str(file)) from error
