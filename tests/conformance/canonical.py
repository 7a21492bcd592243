"""The canonical form of a payload by its columns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pyarrow as pa

from schema_mapping import MessageMapping, compile_mapping
from schema_mapping.protobuf.field_kinds import Cardinality
from schema_mapping.protobuf.mapped_messages import MappedField, MappedMessage
from tests.conformance.suite import descriptor

UNRECOGNIZED = "__unrecognized__"


@cache
def mapping_of(message: str) -> MessageMapping:
    return compile_mapping(descriptor(message))


def canonical(message: str, payload: bytes) -> bytes:
    """Encode a good payload again. Sub-messages without columns pass through their type's mapping."""
    mapping = mapping_of(message)
    (row,) = mapping.decode(pa.array([payload], pa.binary())).to_pylist()
    row["__raw__"] = row["__form__"] = None
    _settle(row, mapping.root, descriptor(message))
    (written,) = mapping.encode(pa.array([row], mapping.arrow_type)).to_pylist()
    return written


def _settle(row: dict[str, Any], mapped: MappedMessage, its_type: Any) -> None:
    for field in mapped.fields:
        inner = its_type.fields_by_number[field.number].message_type
        cells = _cells(row[field.name], field.cardinality)
        if field.value is not None:
            _settle_all(cells, field.value, inner.fields_by_name["value"].message_type)
        else:
            _settle_all(cells, field, inner)


def _settle_all(cells: Iterable[Any], field: MappedField, its_type: Any) -> None:
    for cell in cells:
        if field.message is not None and cell is not None:
            _settle(cell, field.message, its_type)
        elif field.is_cut and cell is not None and cell[UNRECOGNIZED] is not None:
            cell[UNRECOGNIZED] = canonical(its_type.full_name, cell[UNRECOGNIZED])


def _cells(column: Any, cardinality: Cardinality) -> Iterable[Any]:
    match cardinality:
        case Cardinality.SINGULAR:
            return (column,)
        case Cardinality.REPEATED:
            return column
        case Cardinality.MAP:
            return (value for _, value in column)
