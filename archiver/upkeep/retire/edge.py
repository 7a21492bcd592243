"""The exact first offset for a time, at the edge of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.records import KAFKA_IDS
from archiver.archive.table_files import TableFile
from archiver.archive.topic_files import TopicFiles
from archiver.storage.row_columns import column_by_id
from archiver.storage.segment import RowRange
from archiver.upkeep.retire.cut import MICROS
from schema_mapping import names
from schema_mapping.columns.fixed import INGEST_TIMESTAMP_ID
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class YoungOffsets:
    """The lowest young offset of each partition, else its end. Unreadable files may be young."""

    offsets: Mapping[int, int]
    failures: Mapping[str, ContextError]


def first_young_offsets(
    time_ms: int, ends: Mapping[int, int], files: Sequence[TableFile], target: TopicFiles
) -> YoungOffsets:
    storage = target.storage()
    micros = time_ms * MICROS
    young = sorted(
        (file for file in files if file.latest_ingest is None or file.latest_ingest >= micros),
        key=lambda file: file.offsets.low if file.offsets else 0,
    )
    offsets, failures = dict[int, int](), dict[str, ContextError]()
    for partition, end in ends.items():
        best = end
        for file in young:
            at = file.partitions
            if at is not None and not at.low <= partition <= at.high:
                continue
            if file.offsets is not None and file.offsets.low >= best:
                break
            try:
                best = min(best, _first_young(storage, file, RowRange(partition=partition, end_offset=best), micros))
            except ContextError as error:
                failures[file.path] = error.placed(topic=target.topic, partition=partition, file=file.path)
                best = file.offsets.low if file.offsets else 0
        offsets[partition] = best
    return YoungOffsets(offsets=offsets, failures=failures)


def _first_young(storage: TopicStorage, file: TableFile, wanted: RowRange, micros: int) -> int:
    best = wanted.end_offset
    with closing(OpenFile.open(storage, file)) as opened:
        for block in opened.reader.blocks(wanted):
            for rows, kafka in opened.rows(block, wanted, KAFKA_IDS | {INGEST_TIMESTAMP_ID}):
                times = column_by_id(rows, INGEST_TIMESTAMP_ID)
                offsets = kafka.field(names.OFFSET).to_numpy()
                if times is not None:
                    offsets = offsets[times.cast("int64").fill_null(micros).to_numpy(zero_copy_only=False) >= micros]
                if len(offsets):
                    best = min(best, int(np.min(offsets)))
    return best
