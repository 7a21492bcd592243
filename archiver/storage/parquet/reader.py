"""Reads Parquet files, also rewritten by other engines. Columns are found by field id."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from archiver.errors import BadSegment, StorageError
from archiver.storage.exact_reads import read_exactly
from archiver.storage.footer import read_footer
from archiver.storage.objects import ListedObject, ObjectStore
from archiver.storage.parquet.compact_thrift import ThriftError
from archiver.storage.parquet.file_end import FileEnd
from archiver.storage.parquet.filter_probe import FilterProbe
from archiver.storage.parquet.footer_chunks import FooterChunks
from archiver.storage.parquet.held_pages import ChunkSpan, HeldPages
from archiver.storage.parquet.index_blob import FOOTER_KEY, BlobPlace, IndexBlob
from archiver.storage.parquet.leaves import ParquetLeaf, leaves_and_paths
from archiver.storage.parquet.metrics import FORMAT, column_metrics, measured_modes
from archiver.storage.parquet.page_checks import doubtful
from archiver.storage.parquet.point_reader import PointReader
from archiver.storage.parquet.row_groups import RowGroups, askable_of, set_values
from archiver.storage.parquet.shortcuts import dictionary_leaves, null_leaves
from archiver.storage.segment import Block, RowRange, SegmentMetadata
from archiver.storage.store_errors import may_be_expired, storage_error
from archiver.storage.taken_rows import taken
from archiver.storage.value_sets import ValueSets
from catalog.model import DataFileInfo
from schema_mapping import names

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
RAW_VALUE = f"{names.VAL}.{names.RAW}"
BATCH_ROWS = 16 << 10
STREAM_ROWS = 2 * BATCH_ROWS
"""Each batch costs something for each of some 40 columns: twice the rows take 0.95 of a stream's CPU."""
BATCH_BYTES = 16 << 20
AT_ONCE_BYTES = 8 << 20
"""Up to this size a file that is read whole is fetched by one request."""


class ParquetSegmentReader:
    def __init__(self, objects: ObjectStore, path: str, *, reads_all: bool = False) -> None:
        self._path = path
        self._objects = objects
        self._used = objects.current
        self._stream = objects.open(path)
        self._stored: ListedObject | None = None
        self._is_in_memory = False
        self._chunks: FooterChunks | None = None
        self._blob: IndexBlob | None = None
        self._files: dict[tuple[bool, bool], pq.ParquetFile] = {}
        self._held: HeldPages | None = None
        try:
            with self._errors():
                if reads_all and self.stored.size <= AT_ONCE_BYTES:
                    self._keep(read_exactly(self._stream, 0, self.stored.size))
                end = FileEnd.read(self._stream)
                self._has_checksum = end.check(path)
                self._end: FileEnd | None = end if self._has_checksum else None
                parsed = self._parsed(end)
                self._footer, self._schema = parsed.metadata, parsed.schema_arrow
                askable = None if self._has_checksum else askable_of(end.footer, self._footer, path)
            self._metadata = read_footer(self._footer.metadata, rows=self._footer.num_rows, path=path)
            self._leaves, self._paths = leaves_and_paths(self._schema)
        except BaseException:
            self._stream.close()
            raise
        self._groups = RowGroups(self._footer, self._leaves, path, askable=askable, pages_end=end.footer_start or 0)

    @property
    def metadata(self) -> SegmentMetadata:
        return self._metadata

    @property
    def stored(self) -> ListedObject:
        if self._stored is None:
            self._stored = self._objects.opened(self._path, self._stream)
        return self._stored

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def blocks(self, rows: RowRange | None = None) -> tuple[Block, ...]:
        return self._groups.blocks(rows)

    def read(
        self,
        block: Block,
        field_ids: frozenset[int] | None = None,
        *,
        without: frozenset[int] = frozenset(),
        in_dictionaries: bool = False,
        is_stream: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Batches have about 16 MiB.

        If credentials expire, the file is reopened and reading continues at the next row.
        """
        columns = None
        if without:
            columns = [leaf.path for leaf in self._below(field_ids) if leaf.field_id not in without]
        elif field_ids is not None:
            columns = [
                ".".join(self._paths[identifier]) for identifier in sorted(field_ids) if identifier in self._paths
            ]
        most = STREAM_ROWS if is_stream else BATCH_ROWS
        options: dict[str, Any] = {
            "batch_size": max(1, min(most, BATCH_BYTES * block.rows // max(1, block.size_bytes))),
            "columns": columns,
            # Threads cost more than they gain if a column is a few pages in memory.
            "use_threads": not (is_stream or self._is_in_memory),
        }
        leaves = [leaf for leaf in self._below(field_ids) if leaf.field_id not in without]
        done, renewed_at = 0, -1
        while True:
            at = 0
            try:
                with self._errors():
                    for batch in self._batches(block, leaves, options, in_dictionaries=in_dictionaries):
                        fresh = batch.slice(max(0, done - at))
                        at += batch.num_rows
                        if fresh.num_rows:
                            yield fresh
                            done = at
            except StorageError as failure:
                if renewed_at == done:
                    raise
                renewed_at = done
                self._open_again(failure)
            else:
                return

    def _batches(
        self, block: Block, leaves: list[ParquetLeaf], options: Mapping[str, Any], *, in_dictionaries: bool
    ) -> Iterator[pa.RecordBatch]:
        spans = self._groups.spans(block.index, leaves)
        pages, rows = self._pages(), 0
        with nullcontext() if self._is_in_memory else pages.holding(span for _, span in spans):
            for leaf, span in spans:
                self._check_values(block, leaf.path, span, pages)
            file = self._file(in_dictionaries=in_dictionaries, is_held=not self._is_in_memory)
            for batch in file.iter_batches(row_groups=[block.index], **options):
                rows += batch.num_rows
                yield _validated(batch)
        self._check_rows(block, rows)

    def _check_values(self, block: Block, column: str, span: ChunkSpan, pages: HeldPages) -> None:
        counted = span.counted(pages.chunk(span))
        if counted != span.values:
            raise BadSegment(
                "the pages of a column don't have as many values as the file's footer says: they were damaged. Restore"
                " the file from a backup, or archive its range again",
                file=self._path,
                column=column,
                row_group=block.index,
                footer=span.values,
                found="unknown" if counted is None else counted,
            )

    def _check_rows(self, block: Block, found: int) -> None:
        """Raise BadSegment if rows are missing: pyarrow may skip damaged pages."""
        if found != block.rows:
            raise BadSegment(
                "a row group gave other rows than the file's footer says: pages of it were damaged. Restore the file"
                " from a backup, or archive its range again",
                file=self._path,
                row_group=block.index,
                footer=block.rows,
                found=found,
            )

    def null_columns(self, block: Block, field_ids: frozenset[int]) -> frozenset[int]:
        if not self._has_checksum:
            return frozenset()
        return null_leaves(self._below(field_ids), self._footer.row_group(block.index).column)

    def to_decode(
        self, block: Block, needed: frozenset[int], *, without: frozenset[int] = frozenset()
    ) -> frozenset[int] | None:
        indexes = {leaf.index for leaf in self._below(needed) if leaf.field_id not in without}
        leaves = [leaf for leaf in self._leaves if leaf.index not in indexes]
        try:
            left = list(doubtful(self._stream, leaves, self._footer_chunks(), block.index, self._footer.schema))
        except (pa.ArrowException, OSError, ValueError, IndexError, ThriftError, StorageError):
            return None  # decoding reports what is wrong, or gets new credentials
        doubted = {leaf.field_id: leaf.parts for leaf in left if leaf.field_id is not None}
        is_named = len(doubted) == len(left) and all(
            self._paths[identifier] == path for identifier, path in doubted.items()
        )
        return (needed - without) | doubted.keys() if is_named else None

    def set_counts(self, block: Block, field_ids: frozenset[int]) -> dict[int, int]:
        return self._groups.set_counts(block.index, field_ids)

    def value_bounds(self, block: Block, field_id: int) -> tuple[int, int] | tuple[bytes, bytes] | None:
        return self._groups.value_bounds(block.index, field_id)

    @property
    def value_sets(self) -> ValueSets:
        return self._index.sets

    def may_contain(self, block: Block, field_id: int, value: int | str | bytes) -> bool | None:
        """By a bloom filter with checksums; None without one."""
        leaf = next((leaf for leaf in self._leaves if leaf.field_id == field_id), None)
        sums = None if leaf is None else self._index.checks.get((block.index, leaf.index))
        if leaf is None or sums is None:
            return None
        probe = FilterProbe.of_chunk(self._groups.chunk(block.index, leaf.index), value)
        if probe is None:
            return None
        answer = self._renewing(lambda: probe.ask(self._tail, sums))
        if answer is None:
            _LOG.warning("%s: a bloom filter isn't as it was written, and is left out", self._path)
        return answer

    def take(self, block: Block, rows: npt.NDArray[np.int64], field_ids: frozenset[int]) -> pa.RecordBatch:
        """Read only the rows' pages, if the footer has a checksum."""
        if self._has_checksum:
            try:
                return self._renewing(lambda: self._taken(block, rows, field_ids))
            except ThriftError:
                pass  # without a usable index, the whole row group is read
        return taken(self.read(block, field_ids), rows)

    def _taken(self, block: Block, rows: npt.NDArray[np.int64], field_ids: frozenset[int]) -> pa.RecordBatch:
        points = PointReader(self._schema, self._leaves, self._footer_chunks())
        return points.take(block.index, rows, self._below(field_ids), self._pages(), self._tail)

    @property
    def _index(self) -> IndexBlob:
        """Empty if the sets aren't as written."""
        if self._blob is None:
            position = (self._footer.metadata or {}).get(FOOTER_KEY.encode()) if self._has_checksum else None
            self._blob = IndexBlob()
            if position is not None:
                try:
                    self._blob = self._renewing(
                        lambda: BlobPlace.parse(position).read(self._groups.pages_end, self._tail)
                    )
                except ThriftError:
                    _LOG.warning("%s: the sets of its values aren't as they were written, and are left out", self._path)
        return self._blob

    def _tail(self, start: int, end: int) -> bytes:
        if self._end is not None and start >= self._end.start:
            return self._end.data[start - self._end.start : end - self._end.start]
        return self._pages().read_range(start, end)

    def _renewing(self, read: Callable[[], T]) -> T:
        """Reopen the file if the credentials expired."""
        try:
            with self._errors():
                return read()
        except StorageError as failure:
            self._open_again(failure)
        with self._errors():
            return read()

    def describe(self, size_bytes: int, table_properties: Mapping[str, str]) -> DataFileInfo:
        leaves, groups = self._leaves, range(self._footer.num_row_groups)
        for group in groups:
            for leaf in leaves:
                self._groups.chunk(group, leaf.index)
        with self._errors():  # also if bounds of texts aren't text
            metrics = column_metrics(self._footer, leaves, measured_modes(leaves, table_properties))
        raw = next((leaf for leaf in leaves if leaf.name == RAW_VALUE), None)
        chunks = [] if raw is None else [self._groups.chunk(group, raw.index) for group in groups]
        return DataFileInfo(
            path=self._path,
            size_bytes=size_bytes,
            rows=self._footer.num_rows,
            raw_values=sum(set_values(chunk) or 0 for chunk in chunks),
            column_sizes=metrics.column_sizes,
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            split_offsets=metrics.split_offsets,
            digest=self._metadata.digest,
            format=FORMAT,
            recognition=self._metadata.recognition,
        )

    def _below(self, field_ids: frozenset[int] | None) -> list[ParquetLeaf]:
        if field_ids is None:
            return list(self._leaves)
        paths = {self._paths[identifier] for identifier in field_ids if identifier in self._paths}
        return [leaf for leaf in self._leaves if _is_within(leaf.parts, paths)]

    def _file(self, *, in_dictionaries: bool, is_held: bool = False) -> pq.ParquetFile:
        key = in_dictionaries, is_held
        if key not in self._files:
            paths = dictionary_leaves(self._leaves, self._footer) if in_dictionaries and self._has_checksum else []
            if in_dictionaries and not paths:
                self._files[key] = self._file(in_dictionaries=False, is_held=is_held)
            else:
                self._files[key] = self._parquet(self._footer, paths, is_held=is_held)
        return self._files[key]

    def _pages(self) -> HeldPages:
        if self._held is None:
            self._held = HeldPages(self._stream)
        return self._held

    def _parsed(self, end: FileEnd) -> pq.ParquetFile:
        if not self._is_in_memory and not end.is_whole:
            return pq.ParquetFile(pa.BufferReader(end.data))
        if not self._is_in_memory:
            self._keep(end.data)
        self._files[False, False] = self._parquet()
        return self._files[False, False]

    def _keep(self, data: bytes) -> None:
        self._stream.close()
        self._stream = pa.BufferReader(data)
        self._is_in_memory = True

    def _footer_chunks(self) -> FooterChunks:
        if self._chunks is None:
            self._chunks = FooterChunks(self._end or FileEnd.read(self._stream))
        return self._chunks

    def _parquet(
        self, footer: pq.FileMetaData | None = None, in_dictionaries: Sequence[str] = (), *, is_held: bool = False
    ) -> pq.ParquetFile:
        return pq.ParquetFile(
            self._pages() if is_held else self._stream,
            metadata=footer,
            read_dictionary=in_dictionaries,
            pre_buffer=not (self._is_in_memory or is_held),
            page_checksum_verification=True,
        )

    def _open_again(self, failure: StorageError) -> None:
        self._objects.renew(failure, self._used)
        self._used = self._objects.current
        self._stream, self._is_in_memory = self._objects.open(self._path), False
        self._files, self._held = {}, None

    def close(self) -> None:
        files, self._files = self._files, {}
        for file in files.values():
            file.close(force=True)
        self._stream.close()
        self._stream = pa.BufferReader(b"")
        self._stream.close()
        self._chunks = self._held = self._end = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            failure = storage_error(error, verb="read", path=self._path)
            if type(failure) is not StorageError or may_be_expired(failure):
                raise failure from error
            raise BadSegment(
                "the file's bytes don't read as Parquet: restore it from a backup, or archive its range again",
                file=self._path,
                cause=str(error),
            ) from error


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch.validate()  # pyarrow makes structs of members that have fewer values
    return batch


def _is_within(path: tuple[str, ...], groups: set[tuple[str, ...]]) -> bool:
    return any(path[:depth] in groups for depth in range(1, len(path) + 1))
