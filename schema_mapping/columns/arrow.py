"""Arrow types with field ids. Nullable, unless `paths.is_required`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from schema_mapping import names
from schema_mapping.columns.graph import ColumnGraph, Held, ListOf, MapOf, StructOf
from schema_mapping.columns.ids import ColumnId, ColumnIds
from schema_mapping.columns.paths import Path, is_required
from schema_mapping.columns.shape import ROOT_SPECIALS, TEXTS
from schema_mapping.columns.types import AnyColumnType, ColumnType, DecimalColumn, FixedColumn
from schema_mapping.errors import DescriptorError

FIELD_ID_KEY = b"PARQUET:field_id"
"""The metadata key of field ids for Arrow and pyiceberg, in any file format."""
DOC_KEY = b"doc"
IN_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
"""The type of texts in dictionaries, as files have them."""

_ARROW_TYPES: Final[dict[ColumnType, pa.DataType]] = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INT: pa.int32(),
    ColumnType.UINT: pa.int32(),
    ColumnType.LONG: pa.int64(),
    ColumnType.FLOAT: pa.float32(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.STRING: pa.string(),
    ColumnType.BINARY: pa.binary(),
    ColumnType.DATE: pa.date32(),
    ColumnType.TIME: pa.time64("us"),
    ColumnType.TIMESTAMP: pa.timestamp("us"),
    ColumnType.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    ColumnType.UUID: pa.uuid(),
}


def arrow_field(
    name: str, kind: pa.DataType, field_id: int, *, nullable: bool = True, doc: str | None = None
) -> pa.Field:
    metadata = {FIELD_ID_KEY: str(field_id).encode()}
    if doc is not None:
        metadata[DOC_KEY] = doc.encode()
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def field_id_of(field: pa.Field) -> int:
    return int(field.metadata[FIELD_ID_KEY])


def scalar_arrow_type(kind: AnyColumnType) -> pa.DataType | None:
    """None for a type that contains other columns."""
    match kind:
        case DecimalColumn():
            return pa.decimal128(kind.precision, kind.scale)
        case FixedColumn():
            return pa.binary(kind.size)
        case ColumnType():
            return _ARROW_TYPES.get(kind)


def arrow_struct(graph: ColumnGraph, ids: ColumnIds) -> pa.StructType:
    """Raises DescriptorError for another schema's ids."""
    return _struct(graph, graph.root, (), ids.by_path(), ROOT_SPECIALS)


def _struct(
    graph: ColumnGraph,
    name: str,
    path: Path,
    columns: Mapping[Path, ColumnId],
    specials: tuple[int, ...] = (names.UNRECOGNIZED_STEP,),
) -> pa.StructType:
    fields = [
        arrow_field(
            columns[field_path].name, _type(graph, field.held, field_path, columns), columns[field_path].field_id
        )
        for field in graph.structs[name]
        if (field_path := (*path, field.step)) in columns
    ]
    return pa.struct([*fields, *(_special(step, path, columns) for step in specials)])


def _type(graph: ColumnGraph, held: Held, path: Path, columns: Mapping[Path, ColumnId]) -> pa.DataType:
    def inner(held: Held, step: int) -> pa.Field:
        location = (*path, step)
        kind = _type(graph, held, location, columns)
        return arrow_field(names.STEP_NAMES[step], kind, _id(columns, location), nullable=not is_required(location))

    match held:
        case ListOf():
            return pa.list_(inner(held.element, names.ELEMENT_STEP))
        case MapOf():
            key = inner(held.key, names.MAP_KEY_STEP)
            return pa.map_(key, inner(held.value, names.MAP_VALUE_STEP))
        case StructOf():
            if columns[path].cut:
                return pa.struct([_special(names.UNRECOGNIZED_STEP, path, columns)])
            return _struct(graph, held.name, path, columns)
        case scalar:
            arrow_type = scalar_arrow_type(scalar)
            if arrow_type is None:
                raise DescriptorError("a scalar field has the column type of a struct, list or map", path=path)
            return arrow_type


def _special(step: int, path: Path, columns: Mapping[Path, ColumnId]) -> pa.Field:
    kind = pa.string() if step in TEXTS else pa.binary()
    return arrow_field(names.STEP_NAMES[step], kind, _id(columns, (*path, step)))


def _id(columns: Mapping[Path, ColumnId], path: Path) -> int:
    try:
        return columns[path].field_id
    except KeyError:
        raise DescriptorError("the ids given lack a column of the schema", path=path) from None
