"""Avro schemas of a schema registry, with the types of their references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from archiver.errors import BadSchema
from archiver.schemas.registry.schema_kind import RegisteredSchema, number_context
from catalog.model import SchemaNumber
from schema_mapping.avro.schema import complete_text, types_of, writer_fingerprint
from schema_mapping.errors import DescriptorError

_FIRST_BYTES: Final = b"avro\0"
"""The first bytes of a kept schema. Kept schemas of other kinds begin differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSchema:
    id: SchemaNumber
    text: str

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of everything that bytes and columns depend on."""
        return writer_fingerprint(self.text)

    def to_bytes(self) -> bytes:
        return _FIRST_BYTES + self.text.encode()

    @classmethod
    def from_bytes(cls, number: SchemaNumber, data: bytes) -> Self:
        return cls(id=number, text=data.removeprefix(_FIRST_BYTES).decode())


@dataclass(frozen=True, slots=True)
class AvroSchemas:
    name: str = "AVRO"
    label: str = "Avro"
    other_form: None = None

    def is_other_form(self, text: str) -> bool:  # noqa: ARG002 - registries have Avro schemas as text alone
        return False

    def replacement(self, number: SchemaNumber) -> WriterSchema | None:  # noqa: ARG002 - it depends on no id
        return None

    def read(self, schema: RegisteredSchema, *, leniently: bool = False) -> WriterSchema:  # noqa: ARG002 - no lenient form
        """Raises BadSchema, with the id."""
        try:
            text = complete_text(schema.text, tuple(schema.references.values()))
            types_of(text)
        except DescriptorError as error:
            raise BadSchema(error.message, **number_context(schema.id), **error.context) from error
        return WriterSchema(id=schema.id, text=text)

    def from_bytes(self, number: SchemaNumber, data: bytes) -> WriterSchema | None:
        """None if another kind wrote the bytes."""
        return WriterSchema.from_bytes(number, data) if data.startswith(_FIRST_BYTES) else None


AVRO_SCHEMAS: Final = AvroSchemas()
