"""Bounds of files whose manifests state none, from their rows.

Some engines write none for struct columns: a retention would keep, and an erasure rewrite, all files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.records import KAFKA_IDS
from archiver.archive.table_files import TableFile, ValueBounds
from archiver.archive.topic_files import TopicFiles
from archiver.errors import UpkeepError
from archiver.storage.row_columns import column_by_id
from schema_mapping import names
from schema_mapping.columns.fixed import INGEST_TIMESTAMP_ID
from schema_mapping.errors import ContextError

READERS: Final = 8


@dataclass(slots=True)
class BoundsOfRows:
    """Each file is read once per run. `failures` are unreadable files by path, without bounds."""

    failures: dict[str, ContextError] = field(default_factory=dict)
    _known: dict[str, TableFile] = field(default_factory=dict)

    def of(self, files: Iterable[TableFile], target: TopicFiles) -> dict[str, TableFile]:
        """Bounds include deleted rows."""
        lacking = [file for file in files if lacks_bounds(file)]
        unread = [file for file in lacking if file.path not in self._known and file.path not in self.failures]
        storage = target.storage()

        def read(file: TableFile) -> TableFile | ContextError:
            try:
                return _read(storage, file)
            except ContextError as error:
                return error.placed(topic=target.topic, file=file.path)

        with ThreadPoolExecutor(READERS, thread_name_prefix="bounds") as pool:
            for file, bounded in zip(unread, pool.map(read, unread), strict=True):
                if isinstance(bounded, TableFile):
                    self._known[file.path] = bounded
                else:
                    self.failures[file.path] = bounded
        pairs = ((file, self._known.get(file.path)) for file in lacking)
        return {file.path: _with_bounds(file, bounded) for file, bounded in pairs if bounded is not None}


def lacks_bounds(file: TableFile) -> bool:
    return file.offsets is None or file.partitions is None


def _with_bounds(file: TableFile, bounded: TableFile) -> TableFile:
    return replace(file, partitions=bounded.partitions, offsets=bounded.offsets, latest_ingest=bounded.latest_ingest)


def _read(storage: TopicStorage, file: TableFile) -> TableFile:
    form = storage.formats.named(file.format, file.path)
    lows, highs = list[tuple[int, int]](), list[tuple[int, int]]()
    times = list[int | None]()
    with closing(OpenFile.whole(form, storage.objects, file.path, storage.mappings)) as opened:
        for rows, kafka in _batches(opened):
            partitions, offsets = kafka.field(names.PARTITION), kafka.field(names.OFFSET)
            if kafka.null_count or partitions.null_count or offsets.null_count:
                raise UpkeepError(
                    "the file has rows without a partition and an offset: another engine wrote them. It stays as it is."
                    " `archiver verify` says whether archived records are missing",
                    file=file.path,
                )
            (first, last), (low, high) = (_extremes(column) for column in (partitions, offsets))
            lows.append((first, low))
            highs.append((last, high))
            times.append(_latest(rows))
    if not lows:
        return file
    latest = [time for time in times if time is not None]
    return replace(
        file,
        partitions=ValueBounds(min(first for first, _ in lows), max(last for last, _ in highs)),
        offsets=ValueBounds(min(low for _, low in lows), max(high for _, high in highs)),
        latest_ingest=max(latest) if len(latest) == len(times) else file.latest_ingest,
    )


def _batches(opened: OpenFile) -> Iterator[tuple[pa.RecordBatch, pa.StructArray]]:
    for block in opened.reader.blocks():
        yield from opened.rows(block, None, KAFKA_IDS | {INGEST_TIMESTAMP_ID})


def _extremes(column: pa.Array) -> tuple[int, int]:
    extremes = pc.min_max(column)
    return extremes["min"].as_py(), extremes["max"].as_py()


def _latest(rows: pa.RecordBatch) -> int | None:
    """In µs, None if a timestamp is unknown: that row may be young."""
    times = column_by_id(rows, INGEST_TIMESTAMP_ID)
    if times is None or times.null_count:
        return None
    latest: int = pc.max(times.cast("int64")).as_py()
    return latest
