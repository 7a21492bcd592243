"""Decode poor rows again in the columns of a newer mapping.

A row is replaced if key or value is richer and neither poorer; other rows keep every cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.projection import compile_projection
from archiver.files.recognition import Recognizer, UnknownFields
from archiver.schemas import EnvelopeReader
from archiver.schemas.decode import decode_values, has_errors
from archiver.upkeep.reprocess.poor_rows import ErrorKind, Misfits, PoorColumns, count_kinds
from archiver.upkeep.reprocess.row_filter import Mask, Reach, RowFilter
from catalog.recognition import Recognition
from schema_mapping import names
from schema_mapping.errors import RowsTooLargeError
from schema_mapping.row import RowMapping
from schema_mapping.value_format import ValueMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """By part, `raw_versions` have no schema; `lossy_versions` have columns that the mapping lacks."""

    row: RowMapping
    key_envelope: EnvelopeReader | None = None
    value_envelope: EnvelopeReader | None = None
    raw_versions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    lossy_versions: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, tuple[ValueMapping, EnvelopeReader | None]]:
        return {
            names.KEY: (self.row.key, self.key_envelope),
            names.VAL: (self.row.value, self.value_envelope),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RedecodedRows:
    rows: pa.RecordBatch
    mended: Counter[ErrorKind]
    recognition: Recognition


class Redecoder:
    """`schema` has the new file's columns (`wide_schema`)."""

    def __init__(self, decoding: Decoding, wanted: RowFilter, *, file: pa.Schema, schema: pa.Schema) -> None:
        self._decoding = decoding
        self._reach = wanted.reach
        self._schema = schema
        self._widen = compile_projection(pa.struct(list(file)), pa.struct(list(schema)), "row")
        self._projections = {
            part: compile_projection(mapping.arrow_type, schema.field(part).type, part)
            for part, (mapping, _) in decoding.parts.items()
        }
        self._misfits = Misfits.of(schema, wanted, decoding.row)
        unknown_ids = PoorColumns.of(schema, decoding.row).unknown
        self._unknown_fields = {
            part: UnknownFields.of_struct(schema.field(part).type, unknown_ids) for part in decoding.parts
        }
        self._recognizer = Recognizer(decoding.row, schema)

    def pieces(self, rows: pa.RecordBatch, kafka: pa.StructArray, records: pa.RecordBatch) -> list[RedecodedRows]:
        """Return new rows in order; several pieces above 2 GiB of a column.

        `kafka` and `records` (of ASSEMBLED) belong to `rows`. Raises SchemaRegistryError if an envelope's id can't be
        looked up.
        """
        try:
            return [self._mend(rows, kafka, records)]
        except RowsTooLargeError:
            half = rows.num_rows // 2
            if half == 0:
                raise
            first = self.pieces(rows.slice(0, half), kafka.slice(0, half), records.slice(0, half))
            return first + self.pieces(rows.slice(half), kafka.slice(half), records.slice(half))

    def _mend(self, rows: pa.RecordBatch, kafka: pa.StructArray, records: pa.RecordBatch) -> RedecodedRows:
        wide = pa.RecordBatch.from_struct_array(self._widen(rows.to_struct_array()))
        wide = pa.RecordBatch.from_arrays(wide.columns, schema=self._schema)
        poor = self._misfits.find(wide, kafka)
        places = np.flatnonzero(np.logical_or.reduce([np.zeros(wide.num_rows, np.bool_), *poor.values()]))
        mended: dict[ErrorKind, Mask] = {}
        if len(places):
            chosen = pa.array(places)
            again = self._decode(wide.take(chosen), records.take(chosen))
            wide = _put(wide, places[again.taken], again.rows)
            for kind, where in poor.items():
                gone = np.zeros(len(where), np.bool_)
                gone[places] = again.taken & again.better.get(kind[0], again.taken)
                mended[kind] = where & gone
        return RedecodedRows(rows=wide, mended=count_kinds(mended), recognition=self._recognizer.count(wide, records))

    def _decode(self, rows: pa.RecordBatch, records: pa.RecordBatch) -> _Again:
        count = rows.num_rows
        better: dict[str, Mask] = {}
        worse = np.zeros(count, np.bool_)
        columns = {field.name: rows.column(index) for index, field in enumerate(rows.schema)}
        versions = columns[names.KAFKA].field(names.SCHEMA_VERSION).to_numpy(zero_copy_only=False)
        sent = {names.KEY: records.column("key"), names.VAL: records.column("value")}
        for part, (mapping, envelope) in self._decoding.parts.items():
            before, unknown_before = _has_error(columns[part]), self._unknown(part, columns[part])
            was_raw = np.isin(versions, sorted(self._decoding.raw_versions.get(part, ())))
            decoded = decode_values(mapping, sent[part], envelope, headers=records.column("headers"))
            after = _has_error(decoded) if has_errors(mapping) else before
            columns[part] = self._projections[part](decoded)
            better[part] = before & ~after
            worse |= after & ~before
            if not has_errors(mapping):  # raw today: what has columns would lose them
                worse |= ~before & ~was_raw & _is_set(columns[part])
            unknown_after = self._unknown(part, columns[part])
            lossy = np.isin(versions, sorted(self._decoding.lossy_versions.get(part, ())))
            worse |= ~before & lossy & (unknown_after > 0)  # any of them may have had a column
            if self._reach is not Reach.ERRORS:
                better[part] |= ~before & (unknown_after < unknown_before)
                worse |= ~before & ~was_raw & (unknown_after > unknown_before)
        columns[names.KAFKA] = _of_version(columns[names.KAFKA], self._decoding.row.schema_version)
        richer = np.logical_or.reduce(list(better.values()))
        if self._reach is Reach.ALL:
            richer |= versions != self._decoding.row.schema_version
        taken: Mask = richer & ~worse
        fresh = pa.RecordBatch.from_arrays(list(columns.values()), schema=self._schema)
        return _Again(taken=taken, better=better, rows=fresh.filter(pa.array(taken)))

    def _unknown(self, part: str, column: pa.StructArray) -> npt.NDArray[np.int64]:
        unknown = self._unknown_fields[part]
        sizes = None if unknown is None else unknown.sizes(column)
        return np.zeros(len(column), np.int64) if sizes is None else sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    taken: Mask
    better: dict[str, Mask]
    rows: pa.RecordBatch


def _put(rows: pa.RecordBatch, places: npt.NDArray[np.int64], fresh: pa.RecordBatch) -> pa.RecordBatch:
    if not len(places):
        return rows
    order = np.arange(rows.num_rows)
    order[places] = rows.num_rows + np.arange(len(places))
    return pa.concat_batches([rows, fresh]).take(pa.array(order))


def _has_error(column: pa.StructArray) -> Mask:
    return np.asarray(_errors(column).is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _is_set(column: pa.StructArray) -> Mask:
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _errors(column: pa.StructArray) -> pa.StringArray:
    if column.type.get_field_index(names.ERR) < 0:
        return pa.nulls(len(column), pa.string())
    return pc.struct_field(column, names.ERR)


def _of_version(kafka: pa.StructArray, version: int) -> pa.StructArray:
    columns, index = kafka.flatten(), kafka.type.get_field_index(names.SCHEMA_VERSION)
    columns[index] = pa.array(np.full(len(kafka), version), kafka.type.field(index).type)  # maybe widened by an engine
    return pa.StructArray.from_arrays(columns, fields=list(kafka.type))
