"""Parquet files of term runs: sorted rows in leaves (row groups), read one by one.

Columns are as in Iceberg's draft of secondary indexes: the transformed value, then the row's key.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from archiver.errors import BadSegment
from archiver.storage.postings import GRANULES, OFFSET, PARTITION, POSTINGS, TERM
from archiver.storage.spool_file import SpoolFile
from catalog.term_runs import LeafTable

LEAF_ROWS: Final = 1 << 15
_MOST_FOOTER: Final = 1 << 28
_READ: Final = 1 << 20
_CODECS: Final = {TERM: "none", PARTITION: "zstd", OFFSET: "none", GRANULES: "zstd"}
"""Deltas of hashes, and of offsets in order of hashes, don't become smaller."""
_DELTAS: Final = dict.fromkeys((TERM, OFFSET), "DELTA_BINARY_PACKED")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLeaves:
    """A file as kept in the registry. `footer` is compressed."""

    leaves: LeafTable
    footer: bytes
    checksum: str
    size_bytes: int
    rows: int


def write_leaves(file: SpoolFile, parts: Iterable[pa.Table]) -> WrittenLeaves:
    """Write consecutive, sorted tables of POSTINGS. Raises OSError."""
    firsts: list[int] = []
    rows = 0
    with (
        file.sink() as sink,
        pq.ParquetWriter(
            sink,
            POSTINGS,
            compression=_CODECS,
            use_dictionary=[PARTITION],
            column_encoding=_DELTAS,
            write_statistics=False,
            store_schema=False,
        ) as writer,
    ):
        for leaf in _leaves(parts):
            firsts.append(leaf[TERM][0].as_py())
            rows += leaf.num_rows
            writer.write_table(leaf, row_group_size=LEAF_ROWS)
    with file.reader() as written:
        footer = pq.read_metadata(written)
        table = np.empty((len(firsts), 4), np.int64)
        for number, first in enumerate(firsts):
            start, size = _extent(footer, number)
            written.seek(start)
            table[number] = first, start, size, zlib.crc32(written.read(size))
        written.seek(0)
        digest = hashlib.sha256()
        while part := written.read(_READ):
            digest.update(part)
    kept = BytesIO()
    footer.write_metadata_file(kept)
    return WrittenLeaves(
        leaves=LeafTable(table),
        footer=zstandard.compress(kept.getvalue()),
        checksum=digest.hexdigest(),
        size_bytes=file.size,
        rows=rows,
    )


@dataclass(slots=True)
class LeafReader:
    """The caller has fetched the bytes."""

    path: str
    leaves: LeafTable
    footer: bytes
    _metadata: pq.FileMetaData | None = None

    def rows(self, number: int, data: bytes) -> pa.Table:
        """Raises BadSegment if the leaf isn't as written."""
        _, start, size, checksum = self.leaves.row(number)
        if len(data) != size or zlib.crc32(data) != checksum:
            raise BadSegment("a leaf of a term run isn't as it was written", file=self.path, leaf=number)
        try:
            if self._metadata is None:
                footer = zstandard.decompress(self.footer, max_output_size=_MOST_FOOTER)
                self._metadata = pq.read_metadata(BytesIO(footer))
            source = pa.PythonFile(_LeafBytes(data, start), mode="r")
            return pq.ParquetFile(source, metadata=self._metadata).read_row_group(number)
        except (pa.ArrowException, OSError, zstandard.ZstdError) as error:
            raise BadSegment(
                "a leaf of a term run can't be read", file=self.path, leaf=number, cause=str(error)
            ) from error


class _LeafBytes:
    """Only these bytes can be read."""

    closed = False

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._start, self._at = data, start, 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._start + len(self._data))[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        start = self._at - self._start
        if start < 0:
            raise OSError("bytes before the leaf")
        data = self._data[start:] if size < 0 else self._data[start : start + size]
        self._at += len(data)
        return data

    def close(self) -> None:
        pass


def _leaves(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    rows = 0
    for part in parts:
        waiting.append(part)
        rows += part.num_rows
        if rows >= LEAF_ROWS:
            whole = pa.concat_tables(waiting)
            full = rows // LEAF_ROWS * LEAF_ROWS
            yield from (whole.slice(start, LEAF_ROWS).combine_chunks() for start in range(0, full, LEAF_ROWS))
            waiting, rows = [whole.slice(full)], rows - full
    if rows:
        yield pa.concat_tables(waiting).combine_chunks()


def _extent(footer: pq.FileMetaData, number: int) -> tuple[int, int]:
    """Start and size in bytes."""
    group = footer.row_group(number)
    columns = [group.column(index) for index in range(group.num_columns)]
    start = min(it.dictionary_page_offset or it.data_page_offset for it in columns)
    return start, sum(it.total_compressed_size for it in columns)
