"""Types of `schema_mapping`."""

from __future__ import annotations

from typing import Any, assert_type

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from pyiceberg.schema import Schema

from schema_mapping import (
    Assignment,
    ColumnIds,
    DeclaredSchema,
    LedgerEntry,
    LedgerState,
    MappingOptions,
    MessageMapping,
    RawMapping,
    RowMapping,
    SourceSchema,
    UnionMapping,
    UnionSchema,
    ValueMapping,
    assign,
    compile_mapping,
)


def columns(value: SourceSchema | UnionSchema) -> None:
    given = assign(LedgerState(), key=None, value=value, options=MappingOptions(max_depth=3))
    assert_type(given, Assignment)
    assert_type(given.state, LedgerState)
    assert_type(given.state.entries, tuple[LedgerEntry, ...])
    assert_type(given.row, RowMapping)
    assert_type(given.row.value, ValueMapping)
    assert_type(given.row.value_schema, DeclaredSchema | None)
    assert_type(given.row.text, str)
    assert_type(given.iceberg_schema, Schema)
    assert_type(given.version, int)


def codec(mapping: MessageMapping | RawMapping, values: pa.BinaryArray) -> None:
    rows = mapping.decode(values)
    assert_type(rows, pa.StructArray)
    assert_type(mapping.encode(rows), pa.BinaryArray)
    assert_type(mapping.to_json(), dict[str, Any])
    assert_type(mapping.fingerprint, str)


def compiled(descriptor: Descriptor, ids: ColumnIds) -> None:
    assert_type(compile_mapping(descriptor, ids=ids), MessageMapping)


def union(mapping: UnionMapping) -> None:
    assert_type(mapping.fingerprint, str)
    assert_type(mapping.to_json(), dict[str, Any])
