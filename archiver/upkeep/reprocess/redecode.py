"""Decode rows with `__err__` again: the same records, in the columns of a newer mapping.

A row is replaced if its key or value decodes now and did not before, and the other part still decodes if it did. The
whole row then belongs to the newer schema version. All other rows keep every cell.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.projection import compile_projection
from archiver.schemas import EnvelopeReader
from archiver.schemas.decode import decode_values, has_errors
from archiver.upkeep.reprocess.error_rows import ErrorFilter, ErrorKind, Mask, count_codes, error_codes
from schema_mapping import names
from schema_mapping.errors import RowsTooLargeError
from schema_mapping.row import RowMapping
from schema_mapping.value_format import ValueMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """The mapping and envelopes that a topic's records are decoded with now."""

    row: RowMapping
    key_envelope: EnvelopeReader | None = None
    value_envelope: EnvelopeReader | None = None

    @property
    def parts(self) -> dict[str, tuple[ValueMapping, EnvelopeReader | None]]:
        """The mapping and envelope of key and value."""
        return {
            names.KEY: (self.row.key, self.key_envelope),
            names.VAL: (self.row.value, self.value_envelope),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """Rows in the columns of the new file, and the errors that are gone from them."""

    rows: pa.RecordBatch
    mended: Counter[ErrorKind]


class Redecoder:
    """Decodes rows of one file again. `schema` has the columns of the new file (`wide_schema`)."""

    def __init__(self, decoding: Decoding, wanted: ErrorFilter, *, file: pa.Schema, schema: pa.Schema) -> None:
        self._decoding = decoding
        self._wanted = wanted
        self._schema = schema
        self._widen = compile_projection(pa.struct(list(file)), pa.struct(list(schema)), "row")
        self._projections = {
            part: compile_projection(mapping.arrow_type, schema.field(part).type, part)
            for part, (mapping, _) in decoding.parts.items()
        }

    def pieces(self, rows: pa.RecordBatch, kafka: pa.StructArray, records: pa.RecordBatch) -> list[Mended]:
        """The rows for the new file, in order. `kafka` and `records` (of ASSEMBLED) belong to `rows`.

        There is more than one piece where their columns would exceed 2 GiB together. Raises the leaves of
        SchemaRegistryError where an envelope's id can't be looked up.
        """
        try:
            return [self._mend(rows, kafka, records)]
        except RowsTooLargeError:
            half = rows.num_rows // 2
            if half == 0:
                raise
            first = self.pieces(rows.slice(0, half), kafka.slice(0, half), records.slice(0, half))
            return first + self.pieces(rows.slice(half), kafka.slice(half), records.slice(half))

    def _mend(self, rows: pa.RecordBatch, kafka: pa.StructArray, records: pa.RecordBatch) -> Mended:
        wide = pa.RecordBatch.from_struct_array(self._widen(rows.to_struct_array()))
        wide = pa.RecordBatch.from_arrays(wide.columns, schema=self._schema)
        codes = {part: _codes_of(wide.column(part)) for part in self._decoding.parts}
        inside = self._wanted.rows(kafka)
        asked = {part: self._wanted.errors(each) & inside for part, each in codes.items()}
        places = np.flatnonzero(np.logical_or.reduce(list(asked.values())))
        if not len(places):
            return Mended(rows=wide, mended=Counter())
        chosen = pa.array(places)
        taken, fresh = self._decode(wide.take(chosen), records.take(chosen))
        mended: Counter[ErrorKind] = Counter()
        for part, each in codes.items():
            gone = np.zeros(len(each), np.bool_)
            gone[places[taken]] = True
            gone[places[taken]] &= ~_has_error(fresh.column(part))
            mended += count_codes(part, each, asked[part] & gone)
        return Mended(rows=_put(wide, places[taken], fresh), mended=mended)

    def _decode(self, rows: pa.RecordBatch, records: pa.RecordBatch) -> tuple[Mask, pa.RecordBatch]:
        """Which of the rows to replace, and the new rows."""
        better = np.zeros(rows.num_rows, np.bool_)
        worse = np.zeros(rows.num_rows, np.bool_)
        columns = {field.name: rows.column(index) for index, field in enumerate(rows.schema)}
        sent = {names.KEY: records.column("key"), names.VAL: records.column("value")}
        for part, (mapping, envelope) in self._decoding.parts.items():
            before = _has_error(columns[part])
            decoded = decode_values(mapping, sent[part], envelope)
            after = _has_error(decoded) if has_errors(mapping) else before
            columns[part] = self._projections[part](decoded)
            better |= before & ~after
            worse |= after & ~before
        columns[names.KAFKA] = _of_version(columns[names.KAFKA], self._decoding.row.schema_version)
        taken: Mask = better & ~worse
        fresh = pa.RecordBatch.from_arrays(list(columns.values()), schema=self._schema)
        return taken, fresh.filter(pa.array(taken))


def _put(rows: pa.RecordBatch, places: npt.NDArray[np.int64], fresh: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with those at `places` replaced."""
    if not len(places):
        return rows
    order = np.arange(rows.num_rows)
    order[places] = rows.num_rows + np.arange(len(places))
    return pa.concat_batches([rows, fresh]).take(pa.array(order))


def _codes_of(column: pa.StructArray) -> pa.StringArray:
    return error_codes(_errors(column))


def _has_error(column: pa.StructArray) -> Mask:
    return np.asarray(_errors(column).is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _errors(column: pa.StructArray) -> pa.StringArray:
    if column.type.get_field_index(names.ERR) < 0:
        return pa.nulls(len(column), pa.string())
    return pc.struct_field(column, names.ERR)


def _of_version(kafka: pa.StructArray, version: int) -> pa.StructArray:
    columns = kafka.flatten()
    columns[kafka.type.get_field_index(names.SCHEMA_VERSION)] = pa.array(np.full(len(kafka), version, np.int32))
    return pa.StructArray.from_arrays(columns, fields=list(kafka.type))
