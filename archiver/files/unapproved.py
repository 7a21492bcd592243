"""Keeps values raw that fit only an unapproved schema change.

`archiver reprocess` decodes them after approval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.errors import SchemaRegistryError
from archiver.files.recognition import UNAPPROVED_SCHEMA, Mask, Sizes, UnknownFields
from archiver.schemas import EnvelopeReader
from archiver.schemas.decode import decode_values, has_errors
from archiver.storage.row_columns import field_id
from schema_mapping import names
from schema_mapping.row import RowMapping

if TYPE_CHECKING:
    from catalog.model import SchemaIdentity, SchemaNumber
    from schema_mapping.value_format import ValueMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingMapping:
    row: RowMapping
    key_envelope: EnvelopeReader | None = None
    value_envelope: EnvelopeReader | None = None

    def knowing(self, schemas: Mapping[SchemaIdentity, bytes]) -> Self:
        key, value = (reader and reader.with_schemas(schemas) for reader in (self.key_envelope, self.value_envelope))
        return replace(self, key_envelope=key, value_envelope=value)

    def part(self, part: str) -> tuple[ValueMapping, EnvelopeReader | None]:
        if part == names.KEY:
            return self.row.key, self.key_envelope
        return self.row.value, self.value_envelope


class UnapprovedValues:
    def __init__(self, in_force: RowMapping, waiting: WaitingMapping) -> None:
        self._waiting = waiting
        self._unknown = {"key": _unknown_fields(in_force.key), "value": _unknown_fields(in_force.value)}
        self._unknown_then = {part: _unknown_fields(waiting.part(part)[0]) for part in self._unknown}

    def keep_raw(
        self, part: str, rows: pa.StructArray, records: pa.RecordBatch, *, seen: set[SchemaNumber] | None = None
    ) -> pa.StructArray:
        """Keep only `__raw__` and `__err__` in rows that fit the waiting change better. Raises as `decode_values`."""
        mapping, envelope = self._waiting.part(part)
        if rows.type.get_field_index(names.ERR) < 0 or not has_errors(mapping):
            return rows
        failed, unknown = _failed(rows), _unknown_bytes(self._unknown[part], rows)
        misfits = np.flatnonzero(failed | (unknown > 0))
        if not len(misfits):
            return rows
        chosen = pa.array(misfits)
        values, headers = records.column(part).take(chosen), records.column("headers").take(chosen)
        try:
            again = decode_values(mapping, values, envelope, headers=headers, seen=seen)
        except SchemaRegistryError as error:
            row = int(misfits[int(str(error.context["row"]))])
            raise type(error)(error.message, **{**error.context, "row": row}) from error
        fewer = _unknown_bytes(self._unknown_then[part], again) < unknown[misfits]
        better = ~_failed(again) & (failed[misfits] | fewer)
        if not better.any():
            return rows
        waits = np.zeros(len(rows), np.bool_)
        waits[misfits[better]] = True
        return _without_columns(rows, records.column(part), waits)


def _failed(rows: pa.StructArray) -> Mask:
    return np.asarray(rows.field(names.ERR).is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _unknown_fields(mapping: ValueMapping) -> UnknownFields | None:
    kind = mapping.arrow_type
    return UnknownFields.of_struct(kind, frozenset(_unrecognized_ids(kind)))


def _unrecognized_ids(kind: pa.DataType) -> Iterator[int]:
    if not pa.types.is_nested(kind):
        return
    for child in (kind.field(index) for index in range(kind.num_fields)):
        if child.name == names.UNRECOGNIZED and (identifier := field_id(child)) is not None:
            yield identifier
        yield from _unrecognized_ids(child.type)


def _unknown_bytes(columns: UnknownFields | None, rows: pa.StructArray) -> Sizes:
    sizes = None if columns is None else columns.sizes(rows)
    return np.zeros(len(rows), np.int64) if sizes is None else sizes


def _without_columns(rows: pa.StructArray, values: pa.BinaryArray, waits: Mask) -> pa.StructArray:
    kept = pa.array(np.arange(len(rows)), mask=waits)
    columns = {field.name: column for field, column in zip(rows.type, rows.take(kept).flatten(), strict=True)}
    marked = pa.array(waits)
    columns[names.RAW] = pc.if_else(marked, values.cast(pa.binary()), columns[names.RAW])
    columns[names.ERR] = pc.if_else(marked, UNAPPROVED_SCHEMA, columns[names.ERR])
    return pa.StructArray.from_arrays(list(columns.values()), fields=list(rows.type), mask=values.is_null())
