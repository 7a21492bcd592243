"""JSON Schemas of a schema registry, with the documents of their references."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, Self

from archiver.errors import BadSchema
from archiver.schemas.registry.schema_kind import RegisteredSchema, number_context
from catalog.model import SchemaNumber
from schema_mapping.errors import DescriptorError
from schema_mapping.json.schema import JsonSchema

_FIRST_BYTES: Final = b"json\0"
"""The first bytes of a kept schema. Kept schemas of other kinds begin differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonTypes:
    id: SchemaNumber
    schema: JsonSchema

    def to_bytes(self) -> bytes:
        return _FIRST_BYTES + json.dumps([self.schema.types, self.schema.name]).encode()

    @classmethod
    def from_bytes(cls, number: SchemaNumber, data: bytes) -> Self:
        types, name = json.loads(data.removeprefix(_FIRST_BYTES))
        return cls(id=number, schema=JsonSchema(types=types, name=name))


@dataclass(frozen=True, slots=True)
class JsonSchemas:
    name: str = "JSON"
    label: str = "JSON Schema"
    other_form: None = None

    def is_other_form(self, text: str) -> bool:  # noqa: ARG002 - registries have JSON Schemas as text alone
        return False

    def replacement(self, number: SchemaNumber) -> JsonTypes | None:  # noqa: ARG002 - it depends on no id
        return None

    def read(self, schema: RegisteredSchema, *, leniently: bool = False) -> JsonTypes:  # noqa: ARG002 - no lenient form
        """Raises BadSchema, with the id."""
        try:
            types = JsonSchema.of(schema.text, references=schema.references)
        except DescriptorError as error:
            raise BadSchema(error.message, **number_context(schema.id), **error.context) from error
        return JsonTypes(id=schema.id, schema=types)

    def from_bytes(self, number: SchemaNumber, data: bytes) -> JsonTypes | None:
        """None if another kind wrote the bytes."""
        return JsonTypes.from_bytes(number, data) if data.startswith(_FIRST_BYTES) else None


JSON_SCHEMAS: Final = JsonSchemas()
