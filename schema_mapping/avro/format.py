"""Avro as a value format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from schema_mapping.avro.ledger_steps import Renamed, renamed_steps
from schema_mapping.avro.mapping import AvroMapping, compile_avro, joined, mapping_from_json
from schema_mapping.avro.schema import AVRO_FORMAT, AvroSchema, check_writers, normal, types_of
from schema_mapping.avro.writer_columns import join_writers
from schema_mapping.columns.docs import Comments
from schema_mapping.columns.graph import ColumnGraph
from schema_mapping.columns.ids import ColumnIds
from schema_mapping.columns.ledger import LedgerEntry, Root
from schema_mapping.columns.options import MappingOptions
from schema_mapping.errors import DescriptorError
from schema_mapping.value_format import DeclaredSchema


@dataclass(frozen=True, kw_only=True)
class ReadAvroSchema:
    schema: AvroSchema
    renamed: Renamed

    @cached_property
    def _writers(self) -> tuple[str, ...]:
        return tuple(normal(text) for text in self.schema.writers)

    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps([AVRO_FORMAT, *self._writers]).encode()).hexdigest()

    def columns(self, options: MappingOptions) -> ColumnGraph:  # noqa: ARG002 - they change no column
        return joined(self._writers).graph(self.renamed)

    def comments(self) -> Comments:
        return join_writers([types_of(text) for text in self.schema.writers]).comments(self.renamed)

    def compile(self, ids: ColumnIds, options: MappingOptions, *, keep_raw: bool) -> AvroMapping:
        return compile_avro(self.schema, self.renamed, ids, options, keep_raw=keep_raw)


@dataclass(frozen=True, slots=True)
class AvroValueFormat:
    name: str = AVRO_FORMAT

    def read(self, schema: DeclaredSchema, entries: Iterable[LedgerEntry], root: Root) -> ReadAvroSchema:
        """Renamed fields with aliases keep their columns. Raises DescriptorError."""
        if not isinstance(schema, AvroSchema):
            raise DescriptorError("the schema isn't an Avro schema", root=root, schema=type(schema).__name__)
        check_writers(schema)
        columns = joined(tuple(normal(text) for text in schema.writers))
        return ReadAvroSchema(schema=schema, renamed=renamed_steps(columns, entries, root))

    def mapping(self, data: Mapping[str, Any]) -> AvroMapping:
        return mapping_from_json(data)

    def load_encoder(self) -> None:
        from schema_mapping.avro.encode import encode  # noqa: F401


AVRO: Final = AvroValueFormat()
