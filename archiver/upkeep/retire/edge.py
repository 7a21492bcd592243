"""The exact first offset that a time means, where rows at the edge of a file are to go, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

import numpy as np

from archiver.archive.deletes import DeleteFiles
from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.records import KAFKA_IDS
from archiver.archive.table_files import TableFile
from archiver.storage.row_columns import column_by_id
from archiver.storage.segment import RowRange
from archiver.upkeep.removal.rewriting import RemovalTarget
from archiver.upkeep.retire.cut import MICROS
from schema_mapping import names
from schema_mapping.columns.fixed import INGEST_TIMESTAMP_ID


def first_young_offsets(
    time_ms: int, ends: Mapping[int, int], files: Sequence[TableFile], target: RemovalTarget
) -> dict[int, int]:
    """The lowest offset of each partition whose ingest timestamp is at or after the time. Its end where there is none.

    Only files that may have both older and younger rows are read, the first ones of a partition. Raises the leaves of
    StorageError, and ReplayError.
    """
    storage = TopicStorage(
        deletes=DeleteFiles(target.objects, target.formats),
        objects=target.objects,
        formats=target.formats,
        mappings=KnownMappings(target.topic, target),
    )
    micros = time_ms * MICROS
    young = sorted(
        (file for file in files if file.latest_ingest is None or file.latest_ingest >= micros),
        key=lambda file: file.offsets.low if file.offsets else 0,
    )
    found: dict[int, int] = {}
    for partition, end in ends.items():
        best = end
        for file in young:
            at = file.partitions
            if at is not None and not at.low <= partition <= at.high:
                continue
            if file.offsets is not None and file.offsets.low >= best:
                break
            best = min(best, _first_young(storage, file, RowRange(partition=partition, end_offset=best), micros))
        found[partition] = best
    return found


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
