"""Position and equality deletes, as masks over rows.

Formats without checksums are refused: a row deleted by mistake is a lost record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile

from archiver.archive.deletion_vectors import DeletionVector, is_vector
from archiver.archive.table_files import TableFile
from archiver.errors import BadSegment, ReplayError, UnknownFormat
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.row_columns import column_by_id, field_id
from archiver.storage.segment import SegmentFormat

KEPT = 32
"""Delete files that are kept in memory."""

Mask: TypeAlias = npt.NDArray[np.bool_]
Positions: TypeAlias = npt.NDArray[np.int64]

_FILE, _POSITION = "file_path", "pos"
_TEXTS: Final = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
)


@dataclass(frozen=True, slots=True)
class EqualityKeys:
    field_ids: tuple[int, ...]
    columns: tuple[pa.Array, ...]

    def matches(self, rows: pa.RecordBatch) -> Mask:
        matching = np.ones(rows.num_rows, np.bool_)
        row_codes = np.zeros(rows.num_rows, np.int64)
        key_codes = np.zeros(len(self.columns[0]), np.int64)
        for identifier, written in zip(self.field_ids, self.columns, strict=True):
            column = column_by_id(rows, identifier)
            kind = written.type if column is None else _wider(column.type, written.type)
            keys = written.cast(kind)
            values = pa.nulls(rows.num_rows, kind) if column is None else column.cast(kind)
            distinct = pc.unique(keys)
            codes = pc.index_in(values, value_set=distinct)
            matching &= codes.is_valid().to_numpy(zero_copy_only=False)
            row_codes = row_codes * (len(distinct) + 1) + codes.fill_null(-1).to_numpy()
            key_codes = key_codes * (len(distinct) + 1) + pc.index_in(keys, value_set=distinct).to_numpy()
            key_codes, row_codes = _dense(key_codes, row_codes)
        return matching & np.isin(row_codes, key_codes)


def _wider(column: pa.DataType, keys: pa.DataType) -> pa.DataType:
    """Delete files may be older than a widening of the column."""
    if pa.types.is_integer(column) and pa.types.is_integer(keys):
        return max(column, keys, key=lambda kind: kind.bit_width)
    if pa.types.is_floating(column) and pa.types.is_floating(keys):
        return max(column, keys, key=lambda kind: kind.bit_width)
    if pa.types.is_decimal(column) and pa.types.is_decimal(keys) and column.scale == keys.scale:
        return max(column, keys, key=lambda kind: kind.precision)
    return keys


@dataclass(frozen=True, slots=True)
class Deletes:
    positions: Positions
    equalities: tuple[EqualityKeys, ...] = ()

    @property
    def field_ids(self) -> frozenset[int]:
        return frozenset(identifier for keys in self.equalities for identifier in keys.field_ids)

    def survivors(self, rows: pa.RecordBatch, first_row: int) -> Mask:
        """Return a mask of remaining rows. `first_row` is the first one's position in the file."""
        kept = np.ones(rows.num_rows, np.bool_)
        low, high = np.searchsorted(self.positions, (first_row, first_row + rows.num_rows))
        kept[self.positions[low:high] - first_row] = False
        for keys in self.equalities:
            kept &= ~keys.matches(rows)
        return kept


class DeleteFiles:
    def __init__(self, objects: ObjectStore, formats: SegmentFormats) -> None:
        self._positions = lru_cache(maxsize=KEPT)(partial(_positions, objects, formats))
        self._vectors = lru_cache(maxsize=KEPT)(partial(DeletionVector.positions, objects=objects))
        self._keys = lru_cache(maxsize=KEPT)(partial(_equality_keys, objects, formats))

    def read(self, file: TableFile) -> Deletes:
        """Raise ReplayError and StorageError, with the delete file's name."""
        empty = np.empty(0, np.int64)
        positions = [
            self._vectors(DeletionVector.of_entry(delete))
            if is_vector(delete)
            else self._positions(delete).get(file.path, empty)
            for delete in file.position_deletes
        ]
        keys = [self._keys(delete) for delete in file.equality_deletes]
        return Deletes(
            np.unique(np.concatenate(positions)) if positions else empty,
            tuple(key for key in keys if key is not None),
        )


def _positions(objects: ObjectStore, formats: SegmentFormats, delete: DataFile) -> dict[str, Positions]:
    if delete.record_count == 0:
        return {}
    path = delete.file_path
    parts = objects.reading(path, lambda _: _by_file(_batches(objects, formats, delete), path))
    return {file: np.concatenate(positions) for file, positions in parts.items()}


def _by_file(batches: Iterator[pa.RecordBatch], path: str) -> dict[str, list[Positions]]:
    by_path: dict[str, list[Positions]] = defaultdict(list)
    for rows in batches:
        names = {*rows.schema.names}
        if not {_FILE, _POSITION} <= names or not _says_which(rows[_FILE], rows[_POSITION]):
            raise ReplayError(
                "a position delete file doesn't say which rows it means: rewrite the table's data files",
                file=path,
                found=[f"{field.name} ({field.type})" for field in rows.schema],
            )
        files = rows[_FILE].dictionary_encode()
        codes, positions = files.indices.to_numpy(), rows[_POSITION].to_numpy().astype(np.int64)
        order = np.argsort(codes, kind="stable")
        borders = np.searchsorted(codes[order], np.arange(len(files.dictionary) + 1))
        for code, name in enumerate(_texts(files.dictionary, path)):
            by_path[name].append(positions[order[borders[code] : borders[code + 1]]])
    return by_path


def _says_which(files: pa.Array, positions: pa.Array) -> bool:
    kind = files.type.value_type if pa.types.is_dictionary(files.type) else files.type
    is_named = any(is_kind(kind) for is_kind in _TEXTS)
    return is_named and pa.types.is_integer(positions.type) and not files.null_count and not positions.null_count


def _texts(paths: pa.Array, file: str) -> list[str]:
    try:
        return [str(path) for path in paths.cast(pa.binary()).cast(pa.string()).to_pylist()]
    except pa.ArrowInvalid as error:
        raise BadSegment(
            "a position delete file names data files by bytes that aren't text: restore it from a backup, or rewrite"
            " the table's data files",
            file=file,
            cause=str(error),
        ) from error


def _equality_keys(objects: ObjectStore, formats: SegmentFormats, delete: DataFile) -> EqualityKeys | None:
    identifiers = tuple(delete.equality_ids or ())
    read = objects.reading(delete.file_path, lambda _: list(_batches(objects, formats, delete)))
    if not read:
        return None
    rows = pa.concat_batches(read)
    columns = [column_by_id(rows, identifier) for identifier in identifiers]
    if not columns or any(column is None for column in columns):
        raise ReplayError(
            "an equality delete file doesn't have the columns it names: rewrite the table's data files",
            file=delete.file_path,
            field_ids=identifiers,
            found=[field_id(field) for field in rows.schema],
        )
    return EqualityKeys(identifiers, tuple(columns))


def _dense(keys: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
    distinct, keys = np.unique(keys, return_inverse=True)
    places = np.minimum(np.searchsorted(distinct, rows), len(distinct) - 1)
    return keys.astype(np.int64), np.where(distinct[places] == rows, places, len(distinct)).astype(np.int64)


def _batches(objects: ObjectStore, formats: SegmentFormats, delete: DataFile) -> Iterator[pa.RecordBatch]:
    with _format_of(delete, formats).open(objects, delete.file_path) as reader:
        for block in reader.blocks():
            yield from reader.read(block)


def _format_of(delete: DataFile, formats: SegmentFormats) -> SegmentFormat:
    try:
        return formats.named(delete.file_format.value.lower(), delete.file_path)
    except UnknownFormat as error:
        raise UnknownFormat(
            "a file of deletes has a format that the archiver doesn't read: set the table's"
            " `write.delete.format.default` to `parquet`, and have an engine rewrite the data files that have deletes",
            **error.context,
        ) from None
