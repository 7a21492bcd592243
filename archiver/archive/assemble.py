"""Assembles records from rows, by whole columns, byte for byte as sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.coercion import WITNESSES, Coercion, with_envelopes
from archiver.archive.projection import Projection, shared_projection
from archiver.archive.records import AS_CONSUMED, HEADER, SHOWN, RecordParts, RecordShape
from archiver.errors import ReplayError
from archiver.storage.row_columns import column_by_id, field_id, record_timestamps
from archiver.wire.header_ids import KEY_HEADER, VALUE_HEADER, has_header_id
from schema_mapping import names
from schema_mapping.columns.fixed import HEADERS_FIELD, HEADERS_ID, KAFKA_ID, KEY_ID, VAL_ID
from schema_mapping.errors import KernelError
from schema_mapping.row import RowMapping
from schema_mapping.value_format import ShowsValues, ValueMapping

NO_COERCION = Coercion()

Rows: TypeAlias = slice | npt.NDArray[np.int64]
"""The positions of rows among the records that are assembled."""

_HEADERS_TYPE = pa.list_(pa.field("element", HEADER, nullable=False))


class Mappings(Protocol):
    def row_mapping(self, version: int) -> RowMapping:
        """Raise ReplayError if no source has this version."""


@dataclass(frozen=True)
class Assembler:
    path: str
    schema: pa.Schema
    mappings: Mappings
    coercion: Coercion = NO_COERCION
    shape: RecordShape = AS_CONSUMED

    @cached_property
    def field_ids(self) -> frozenset[int]:
        """Raise ReplayError if the file lacks a column to read."""
        key = next((field for field in self.schema if field_id(field) == KEY_ID), None)
        raw = None if key is None else next((field for field in key.type if field.name == names.RAW), None)
        raw_id = None if raw is None else field_id(raw)
        if raw_id is None:
            raise self._incomplete(f"{names.KEY}.{names.RAW}")
        witnesses = [field for field in key.type if field.name in WITNESSES] if key and self.coercion.key else []
        keys = {KEY_ID} if self.shape.shows else {raw_id, *filter(None, map(field_id, witnesses))}
        return self.shape.ids | keys | {VAL_ID, HEADERS_ID}

    @cached_property
    def omissible_ids(self) -> frozenset[int]:
        return self.shape.ids | {VAL_ID, HEADERS_ID}

    def kafka(self, rows: pa.RecordBatch, nulls: frozenset[int] = frozenset()) -> pa.StructArray:
        """Raise ReplayError if a required column is missing. Columns in `nulls` weren't read."""
        with self._errors():
            column = column_by_id(rows, KAFKA_ID)
            if column is None:
                raise self._incomplete(names.KAFKA)
            projection = self._projection(column.type, self.shape.kafka_type, names.KAFKA, nulls=nulls)
            if lost := [name for name in projection.missing if name not in self.shape.optional_names]:
                raise self._incomplete(*lost)
            return projection(column)

    def records(
        self, rows: pa.RecordBatch, kafka: pa.StructArray, nulls: frozenset[int] = frozenset()
    ) -> pa.RecordBatch:
        """Raise ReplayError. Columns in `nulls` weren't read."""
        with self._errors():
            return self.shape.build(self._parts(rows, kafka, nulls))

    def outlines(self, rows: pa.RecordBatch, kafka: pa.StructArray, columns: frozenset[str]) -> pa.RecordBatch:
        """Assemble positions, times, and `key` or `headers` if in `columns`. Raises ReplayError.

        Keys have no added envelopes.
        """
        with self._errors():
            outlines = {
                "partition": kafka.field(names.PARTITION),
                "offset": kafka.field(names.OFFSET),
                "timestamp": record_timestamps(kafka),
            }
            return pa.RecordBatch.from_pydict(outlines | self.as_archived(rows, columns))

    def as_archived(self, rows: pa.RecordBatch, columns: frozenset[str]) -> dict[str, pa.Array]:
        """Return `key` or `headers` of records, if `columns` has them. Raises ReplayError."""
        parts: dict[str, pa.Array] = {}
        with self._errors():
            if "key" in columns:
                key = column_by_id(rows, KEY_ID)
                if key is None:
                    raise self._incomplete(names.KEY)
                parts["key"] = pc.struct_field(key, names.RAW).cast(pa.binary())
            if "headers" in columns:
                parts["headers"] = self._headers(column_by_id(rows, HEADERS_ID), frozenset())
        return parts

    def _parts(self, rows: pa.RecordBatch, kafka: pa.StructArray, nulls: frozenset[int]) -> RecordParts:
        versions = kafka.field(names.SCHEMA_VERSION)
        key, val = column_by_id(rows, KEY_ID), column_by_id(rows, VAL_ID)
        if key is None or val is None:
            raise self._incomplete(names.KEY if key is None else names.VAL)
        headers = self._headers(column_by_id(rows, HEADERS_ID), nulls)
        values = partial(self._coerced_values, headers=headers, nulls=nulls)
        return RecordParts(
            kafka=kafka,
            keys=self._keys(key, versions, headers),
            values=self._by_version(val, versions, values),
            headers=headers,
            shown_keys=self._by_version(key, versions, self._shown_keys) if self.shape.shows else None,
            shown_values=self._by_version(val, versions, self._shown_values) if self.shape.shows else None,
        )

    def _keys(self, key: pa.StructArray, versions: pa.Int32Array, headers: pa.ListArray) -> pa.BinaryArray:
        if not (self.coercion.key and {*WITNESSES} <= {field.name for field in key.type}):
            return pc.struct_field(key, names.RAW).cast(pa.binary())
        return self._by_version(key, versions, partial(self._coerced_keys, headers=headers))

    def _coerced_keys(self, key: pa.StructArray, version: int | None, at: Rows, *, headers: pa.ListArray) -> pa.Array:
        values = pc.struct_field(key, names.RAW).cast(pa.binary())
        envelope = None if version is None else self.mappings.row_mapping(version).key_envelope
        return (
            values
            if envelope is None
            else with_envelopes(values, key, envelope, has_header_id(headers, KEY_HEADER)[at])
        )

    def _coerced_values(
        self, val: pa.StructArray, version: int | None, at: Rows, *, headers: pa.ListArray, nulls: frozenset[int]
    ) -> pa.BinaryArray:
        values, rows, missing = self._encode(val, version, nulls)
        envelope = self._row_mapping(version).value_envelope
        if not self.coercion.value or envelope is None:
            return values
        if lost := [name for name in missing if name.rpartition(".")[2] in WITNESSES]:
            raise self._incomplete(*lost)
        return with_envelopes(values, rows, envelope, has_header_id(headers, VALUE_HEADER)[at])

    def _shown_keys(self, key: pa.StructArray, version: int | None, _at: Rows) -> pa.StructArray:
        values = pc.struct_field(key, names.RAW).cast(pa.binary())
        return self._shown(key, values, names.KEY, version, self._row_mapping(version).key)

    def _shown_values(self, val: pa.StructArray, version: int | None, _at: Rows) -> pa.StructArray:
        values, _, _ = self._encode(val, version)
        return self._shown(val, values, names.VAL, version, self._row_mapping(version).value)

    def _shown(
        self, column: pa.StructArray, values: pa.BinaryArray, name: str, version: int | None, mapping: ValueMapping
    ) -> pa.StructArray:
        if not isinstance(mapping, ShowsValues):
            return pa.nulls(len(column), SHOWN)
        projection = self._projection(column.type, mapping.arrow_type, name, version or 0)
        if lost := [name_path for name_path in projection.missing if name_path.rpartition(".")[2] in WITNESSES]:
            raise self._incomplete(*lost)
        return mapping.shown(values, projection(column))

    def _row_mapping(self, version: int | None) -> RowMapping:
        if version is None:
            raise ReplayError(
                "rows have no schema version: restore the file from a snapshot before the rewrite", file=self.path
            )
        return self.mappings.row_mapping(version)

    def _by_version(
        self,
        column: pa.StructArray,
        versions: pa.Int32Array,
        convert: Callable[[pa.StructArray, int | None, Rows], pa.Array],
    ) -> pa.Array:
        distinct = pc.unique(versions)
        if len(distinct) == 1:
            return convert(column, distinct[0].as_py(), slice(None))
        parts = []
        places = []
        for version in distinct.to_pylist():
            if version is None:
                raise self._incomplete(f"{names.KAFKA}.{names.SCHEMA_VERSION}")
            positions = np.flatnonzero(pc.fill_null(pc.equal(versions, version), fill_value=False))
            places.append(positions)
            parts.append(convert(column.take(pa.array(positions)), version, positions))
        order = np.argsort(np.concatenate(places), kind="stable")
        return pa.concat_arrays(parts).take(pa.array(order))

    def _encode(
        self, val: pa.StructArray, version: int | None, nulls: frozenset[int] = frozenset()
    ) -> tuple[pa.BinaryArray, pa.StructArray, tuple[str, ...]]:
        mapping = self._row_mapping(version).value
        projection = self._projection(
            val.type,
            mapping.arrow_type,
            names.VAL,
            version or 0,
            nulls=nulls,
            in_dictionaries=mapping.takes_dictionaries,
        )
        rows = projection(val)
        if projection.missing and self._needs_columns(rows):
            raise ReplayError(
                "columns that these rows were written with are gone from the file, so their values can't be given "
                "back: restore it from a snapshot before the rewrite, and keep removed columns in the table",
                file=self.path,
                columns=projection.missing,
                schema_version=version,
            )
        try:
            return mapping.encode(rows), rows, projection.missing
        except KernelError as error:
            raise ReplayError(
                "rows can't be encoded back: the file was changed since it was written",
                file=self.path,
                schema_version=version,
                cause=str(error),
            ) from error

    def _headers(self, headers: pa.ListArray | None, nulls: frozenset[int]) -> pa.ListArray:
        if headers is None:
            raise self._incomplete(names.HEADERS)
        column = self._projection(headers.type, HEADERS_FIELD.type, names.HEADERS, nulls=nulls)(headers)
        first, last = column.offsets[0], column.offsets[-1]
        entries = column.values.slice(first.as_py(), last.as_py() - first.as_py())
        keys, raw_keys = entries.field(names.HEADER_KEY).cast(pa.binary()), entries.field(names.RAW_KEY)
        if raw_keys.null_count < len(raw_keys):
            keys = pc.coalesce(raw_keys, keys)
        pairs = pa.StructArray.from_arrays([keys, entries.field(names.HEADER_VALUE)], fields=list(HEADER))
        return pa.ListArray.from_arrays(pc.subtract(column.offsets, first), pairs, type=_HEADERS_TYPE)

    @staticmethod
    def _needs_columns(rows: pa.StructArray) -> bool:
        return bool(pc.any(pc.and_(rows.is_valid(), pc.struct_field(rows, names.RAW).is_null())).as_py())

    def _projection(
        self,
        source: pa.DataType,
        target: pa.DataType,
        name: str,
        version: int = 0,
        *,
        nulls: frozenset[int] = frozenset(),
        in_dictionaries: bool = False,
    ) -> Projection:
        # rows of one file may be read with other columns than before; in one file a name has always the same field id
        cached = self._projections.get((name, version))
        if cached is not None and cached[0] == (source, nulls):
            return cached[1]
        compiled = shared_projection(source, target, name, nulls=nulls, in_dictionaries=in_dictionaries)
        self._projections[name, version] = (source, nulls), compiled
        return compiled

    @cached_property
    def _projections(self) -> dict[tuple[str, int], tuple[tuple[pa.DataType, frozenset[int]], Projection]]:
        return {}

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowIndexError) as error:
            raise ReplayError(
                "columns of the file don't have the types that they were written with: restore it from a backup, or"
                " from before the rewrite",
                file=self.path,
                cause=str(error),
            ) from error

    def _incomplete(self, *columns: str) -> ReplayError:
        return ReplayError(
            "the file lacks columns or values that every archived row has: restore it from before the rewrite",
            file=self.path,
            columns=columns,
        )
