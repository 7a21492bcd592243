"""Merge a group's rows by offset, one stream per Kafka partition.

Overlapping blocks are spilled to the spool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from archiver.archive.offset_order import sorted_by_offset
from archiver.archive.open_file import TopicStorage
from archiver.archive.partition_scan import PartitionScan
from archiver.archive.reorder_buffer import ReorderBuffer
from archiver.storage.segment import RowRange
from archiver.upkeep.compact.source_rows import PARTITION, SourceRows

UNKNOWN_PARTITIONS = 16
"""How many Kafka partitions are thought to be in a file that doesn't say."""


def row_streams(
    sources: Sequence[SourceRows], storage: TopicStorage, *, is_mixed: bool, held_bytes: int
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Exhaust each stream before taking the next."""
    if is_mixed:
        yield from _dealt(sources, storage, held_bytes)
        return
    partition = sources[0].source.partition
    assert partition is not None
    by_path: Mapping[str, SourceRows] = {source.source.file.path: source for source in sources}
    scan = PartitionScan(
        storage,
        sorted((source.source.file for source in sources), key=lambda file: file.offsets.low if file.offsets else 0),
        RowRange(partition=partition),
        held_bytes=held_bytes,
        open_file=lambda file: by_path[file.path],
    )
    yield partition, iter(scan)


def _dealt(
    sources: Sequence[SourceRows], storage: TopicStorage, held_bytes: int
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    share = held_bytes // max(1, sum(_partitions(source) for source in sources[:1]))
    buffers: dict[int, ReorderBuffer] = {}
    with ExitStack() as closing:
        for source in sources:
            for block in source.reader.blocks():
                for batch in source.rows(block):
                    partitions = batch.column(PARTITION).to_numpy()
                    for partition in np.unique(partitions).tolist():
                        if partition not in buffers:
                            buffers[partition] = ReorderBuffer(storage.spill, held_bytes=share)
                            closing.callback(buffers[partition].close)
                        buffers[partition].add(sorted_by_offset(batch.filter(pa.array(partitions == partition))))
            source.close()
        for partition in sorted(buffers):
            yield partition, buffers[partition].take_below()


def _partitions(each: SourceRows) -> int:
    partitions = each.source.file.partitions
    return partitions.high - partitions.low + 1 if partitions else UNKNOWN_PARTITIONS
