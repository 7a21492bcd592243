"""Reads matching records by their positions in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
import pyarrow as pa

from archiver.archive.assemble import Assembler
from archiver.archive.records import RecordShape
from archiver.errors import BadSegment
from archiver.find.block_matches import MatchedBlock, Numbers
from archiver.find.file_cache import FileCache
from archiver.find.order import OrderedMatches


def read_points(
    matches: OrderedMatches, blocks: Sequence[MatchedBlock], files: FileCache, shape: RecordShape, pool: Executor
) -> list[tuple[str, pa.RecordBatch]]:
    """Return batches of one topic, in order."""
    numbers, owners = np.unique(matches.blocks, return_inverse=True)
    chosen = [np.flatnonzero(owners == place) for place in range(len(numbers))]
    reads = [
        pool.submit(_read, blocks[number], matches.positions[places], files, shape)
        for number, places in zip(numbers.tolist(), chosen, strict=True)
    ]
    parts = [read.result() for read in reads]
    _check(matches, chosen, parts)
    order = np.argsort(np.concatenate(chosen), kind="stable")
    records = pa.concat_batches(parts).take(pa.array(order))
    topics = [blocks[number].source.archive.topic for number in matches.blocks.tolist()]
    borders = [place for place in range(1, len(topics)) if topics[place] != topics[place - 1]]
    spans = zip([0, *borders], [*borders, len(topics)], strict=True)
    return [(topics[start], records.slice(start, end - start)) for start, end in spans]


def _read(matched: MatchedBlock, positions: Numbers, files: FileCache, shape: RecordShape) -> pa.RecordBatch:
    order = np.argsort(positions, kind="stable")
    storage = matched.source.storage
    with files.using(storage, matched.file) as opened:
        assembler = Assembler(matched.file.path, opened.reader.schema, storage.mappings, storage.coercion, shape)
        rows = opened.reader.take(matched.block, positions[order], assembler.field_ids)
        records = assembler.records(rows, assembler.kafka(rows))
    return records.take(pa.array(np.argsort(order, kind="stable")))


def _check(matches: OrderedMatches, chosen: Sequence[Numbers], parts: Sequence[pa.RecordBatch]) -> None:
    """Raise BadSegment if other records than the matches were read: the page index is damaged."""
    for places, records in zip(chosen, parts, strict=True):
        offsets = np.abs(matches.keys[-1, places])
        if not np.array_equal(records.column("offset").to_numpy(), offsets):
            raise BadSegment(
                "the pages of a file gave other records than its columns: its page index was damaged. Restore the file"
                " from a backup, or archive its range again. `archiver replay --where` reads it without the index",
                offsets=offsets[:3].tolist(),
            )
