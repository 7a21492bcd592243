"""A second file format: an Arrow file with a block per batch. Iceberg has no name for it, so it is `orc`."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.storage.footer import footer_of, read_footer
from archiver.storage.objects import ObjectStore
from archiver.storage.row_columns import RowTotals, column_by_id, field_id
from archiver.storage.segment import Block, RowRange, SegmentLayout, SegmentMetadata, SegmentOrigin
from archiver.storage.spool_file import SpoolFile
from archiver.storage.taken_rows import taken
from archiver.storage.value_sets import ValueSets
from catalog.model import DataFileInfo
from catalog.partitioning import UNPLACED, PartitionTuple
from catalog.recognition import Recognition
from schema_mapping import names
from schema_mapping.columns.fixed import INGEST_TIMESTAMP_ID


@dataclass(frozen=True, slots=True)
class ArrowFormat:
    name: ClassVar[str] = "orc"
    extension: ClassVar[str] = "arrow"

    def start(self, spool_file: SpoolFile, layout: SegmentLayout) -> ArrowWriter:
        return ArrowWriter(spool_file, layout)

    def open(self, objects: ObjectStore, path: str, *, reads_all: bool = False) -> ArrowReader:
        return ArrowReader(objects, path)

    def describe(self, objects: ObjectStore, path: str, *, table_properties: Mapping[str, str]) -> DataFileInfo:
        with self.open(objects, path) as reader:
            about, (low, high) = reader.metadata, reader.ingested()
        return DataFileInfo(
            path=path,
            size_bytes=objects.size(path),
            rows=about.rows,
            digest=about.digest,
            lower_bounds={INGEST_TIMESTAMP_ID: struct.pack("<q", low)},
            upper_bounds={INGEST_TIMESTAMP_ID: struct.pack("<q", high)},
            format=self.name,
        )


class ArrowWriter:
    def __init__(self, file: SpoolFile, layout: SegmentLayout) -> None:
        self._file = file
        self._layout = layout
        self._sink = file.sink()
        self._ipc = pa.ipc.new_file(self._sink, layout.schema)
        self._totals = RowTotals()
        self._is_closed = False

    @property
    def rows(self) -> int:
        return self._totals.rows

    @property
    def size_bytes(self) -> int:
        return int(self._sink.tell())

    def write(self, rows: pa.RecordBatch) -> None:
        self._ipc.write_batch(rows)
        self._totals.add(rows)

    def close(
        self,
        *,
        origin: SegmentOrigin | None,
        path: str,
        digest: str | None = None,
        recognition: Recognition | None = None,
        partition: PartitionTuple = UNPLACED,
        largest_record: int | None = None,
    ) -> DataFileInfo:
        assert partition.is_time_alone, "this format keeps no partitions of columns"
        nothing = pa.RecordBatch.from_pylist([], self._layout.schema)
        pairs = footer_of(self._layout, origin, digest, recognition, largest_record=largest_record)
        self._ipc.write_batch(nothing, custom_metadata=pairs)
        self._ipc.close()
        self._sink.close()
        self._is_closed = True
        low, high = self._totals.timestamps or (None, None)
        return DataFileInfo(
            path=path,
            size_bytes=self._file.size,
            rows=self._totals.rows,
            partition=partition,
            raw_values=self._totals.raw_values,
            min_timestamp=low,
            max_timestamp=high,
            digest=digest,
            format=ArrowFormat.name,
            recognition=recognition,
        )

    def abort(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._sink.close()
            self._file.remove()


class ArrowReader:
    def __init__(self, objects: ObjectStore, path: str) -> None:
        self._stream = objects.open(path)
        self.stored = objects.opened(path, self._stream)
        self._ipc = pa.ipc.open_file(self._stream)
        self._count = self._ipc.num_record_batches - 1
        _, pairs = self._ipc.get_batch_with_custom_metadata(self._count)
        rows = sum(self._ipc.get_batch(index).num_rows for index in range(self._count))
        self.metadata: SegmentMetadata = read_footer(dict(pairs), rows=rows, path=path)
        self.schema: pa.Schema = self._ipc.schema

    def ingested(self) -> tuple[int, int]:
        columns = [self._ipc.get_batch(index).column(names.KAFKA) for index in range(self._count)]
        extremes = pc.min_max(
            pa.chunked_array([column.field(names.INGEST_TIMESTAMP).cast(pa.int64()) for column in columns])
        )
        return extremes["min"].as_py(), extremes["max"].as_py()

    def blocks(self, rows: RowRange | None = None) -> tuple[Block, ...]:
        result = []
        first_row = 0
        for index in range(self._count):
            batch = self._ipc.get_batch(index)
            kafka = batch.column(names.KAFKA)
            offsets, partitions = kafka.field(names.OFFSET), pc.unique(kafka.field(names.PARTITION)).to_pylist()
            low, high = offsets[0].as_py(), offsets[-1].as_py()
            if rows is None or (rows.partition in partitions and low < rows.end_offset and high >= rows.start_offset):
                block = Block(
                    index=index,
                    first_row=first_row,
                    rows=batch.num_rows,
                    size_bytes=batch.nbytes,
                    low_offset=low,
                    high_offset=high,
                    is_sorted=True,
                )
                result.append(block)
            first_row += batch.num_rows
        return tuple(result)

    def read(
        self,
        block: Block,
        field_ids: frozenset[int] | None = None,
        *,
        without: frozenset[int] = frozenset(),
        in_dictionaries: bool = False,
        is_stream: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        assert not without
        batch = self._ipc.get_batch(block.index)
        if field_ids is None:
            yield batch
            return
        kept = [pair for field in batch.schema if (pair := _only(field, batch.column(field.name), field_ids))]
        fields, arrays = zip(*kept, strict=True)
        yield pa.RecordBatch.from_arrays(list(arrays), schema=pa.schema(fields))

    def null_columns(self, block: Block, field_ids: frozenset[int]) -> frozenset[int]:
        return frozenset()

    def to_decode(self, block: Block, needed: frozenset[int], *, without: frozenset[int] = frozenset()) -> None: ...

    def set_counts(self, block: Block, field_ids: frozenset[int]) -> dict[int, int]:
        rows = self._ipc.get_batch(block.index)
        columns = {number: column_by_id(rows, number) for number in field_ids}
        return {number: len(column) - column.null_count for number, column in columns.items() if column is not None}

    def value_bounds(self, block: Block, field_id: int) -> None:
        """States none."""

    @property
    def value_sets(self) -> ValueSets:
        return ValueSets()

    def may_contain(self, block: Block, field_id: int, value: int | str | bytes) -> None:
        """Has no filters."""

    def take(self, block: Block, rows: npt.NDArray[np.int64], field_ids: frozenset[int]) -> pa.RecordBatch:
        return taken(self.read(block, field_ids), rows)

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _only(field: pa.Field, array: pa.Array, field_ids: frozenset[int]) -> tuple[Any, Any] | None:
    if field_id(field) in field_ids:
        return field, array
    if not pa.types.is_struct(field.type):
        return None
    below = [_only(child, array.field(child.name), field_ids) for child in field.type]
    fields, arrays = [pair[0] for pair in below if pair], [pair[1] for pair in below if pair]
    if not fields:
        return None
    return (
        field.with_type(pa.struct(fields)),
        pa.StructArray.from_arrays(arrays, fields=fields, mask=array.is_null()),
    )
