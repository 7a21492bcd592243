"""JSON as a value format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from schema_mapping.columns.docs import Comments
from schema_mapping.columns.graph import ColumnGraph
from schema_mapping.columns.ids import ColumnIds
from schema_mapping.columns.ledger import LedgerEntry, Root
from schema_mapping.columns.options import MappingOptions
from schema_mapping.errors import DescriptorError
from schema_mapping.json.json_columns import JsonColumns
from schema_mapping.json.mapping import JsonMapping, compiled, mapping_from_json
from schema_mapping.json.schema import JSON_FORMAT, JsonSchema, plain_types, types_of
from schema_mapping.value_format import DeclaredSchema


@dataclass(frozen=True, kw_only=True)
class ReadJsonSchema:
    schema: JsonSchema

    @cached_property
    def _columns(self) -> JsonColumns:
        return JsonColumns.of(types_of(self.schema.types))

    def fingerprint(self) -> str:
        text = json.dumps([JSON_FORMAT, plain_types(self.schema.types), self.schema.name])
        return hashlib.sha256(text.encode()).hexdigest()

    def columns(self, options: MappingOptions) -> ColumnGraph:  # noqa: ARG002 - they change no column
        return self._columns.graph

    def comments(self) -> Comments:
        return dict(self._columns.comments())

    def compile(self, ids: ColumnIds, options: MappingOptions, *, keep_raw: bool) -> JsonMapping:
        return compiled(plain_types(self.schema.types), self.schema.name, options, keep_raw, ids)


@dataclass(frozen=True, slots=True)
class JsonValueFormat:
    name: str = JSON_FORMAT

    def read(self, schema: DeclaredSchema, entries: Iterable[LedgerEntry], root: Root) -> ReadJsonSchema:  # noqa: ARG002 - columns are found by name
        """Raises DescriptorError if it isn't a JsonSchema."""
        if not isinstance(schema, JsonSchema):
            raise DescriptorError("the schema isn't a JSON Schema", root=root, schema=type(schema).__name__)
        return ReadJsonSchema(schema=schema)

    def mapping(self, data: Mapping[str, Any]) -> JsonMapping:
        return mapping_from_json(data)

    def load_encoder(self) -> None:
        from schema_mapping.json.encode import encode  # noqa: F401


JSON: Final = JsonValueFormat()
