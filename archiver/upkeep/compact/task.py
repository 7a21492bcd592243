"""The task of `archiver compact`: merge a group's rows, one row group in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.errors import UpkeepError, blamed_file
from archiver.storage.spool import TaskSpool
from archiver.upkeep.compact.borders import END, FIRST, Borders
from archiver.upkeep.compact.choice import FileGroup, SourceFile
from archiver.upkeep.compact.new_files import MadeFile, NewFiles
from archiver.upkeep.compact.row_stream import row_streams
from archiver.upkeep.compact.source_rows import Offsets, SourceRows, check_digest
from archiver.upkeep.compact.target import CompactTarget
from archiver.upkeep.wide_schema import wide_schema
from archiver.wire.record_digest import RecordDigest
from catalog.ranges.rewrite import NewFile, RecordSpan, RewriteGroup

OPENERS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTask:
    target: CompactTarget
    group: FileGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """`removed` rows were deleted before by other engines."""

    rewritten: RewriteGroup
    schema_version: int
    files: int
    size_bytes: int
    rows: int
    removed: int
    seconds: float
    cpu_seconds: float


def compact_group(task: CompactTask) -> GroupResult:
    """Raise UpkeepError, ReplayError and StorageError, with a path."""
    started, cpu = time.monotonic(), time.process_time()
    with ExitStack() as closing:
        work = _Merging(task, closing)
        made = work.run()
        rewritten = work.rewritten(made)
    return GroupResult(
        rewritten=rewritten,
        schema_version=work.version,
        files=len(made),
        size_bytes=sum(new_file.file.size_bytes for new_file in made),
        rows=sum(new_file.file.rows for new_file in made),
        removed=sum(span.removed for span in rewritten.all_spans),
        seconds=time.monotonic() - started,
        cpu_seconds=time.process_time() - cpu,
    )


class _Merging:
    def __init__(self, task: CompactTask, closing: ExitStack) -> None:
        self._target, self._group = task.target, task.group
        target = task.target.files
        self._storage = target.storage(spill=target.spool)
        self._mappings = self._storage.mappings
        self._spool = closing.enter_context(TaskSpool(target.spool))
        opened = _opened(self._storage, self._group.files, closing)
        versions = frozenset().union(*(file.schema_versions() for file in opened))
        versions = versions or frozenset({max(target.mappings)})  # all rows may be deleted
        self.version = max(versions)
        newest = self._mappings.row_mapping(self.version)
        schema = newest.arrow_schema
        for open_file, source in zip(opened, self._group.files, strict=True):
            try:
                schema = wide_schema(schema, open_file.reader.schema, target.column_names)
            except UpkeepError as error:
                raise error.placed(file=source.file.path) from error
        texts = {version: self._mappings.row_mapping(version).text for version in versions}
        self._layout = target.layout(schema, self.version, texts)
        self._sources = [
            SourceRows(file, source, schema) for file, source in zip(opened, self._group.files, strict=True)
        ]
        self._partitions: list[int] = []

    def run(self) -> list[MadeFile]:
        try:
            return self._made()
        except UpkeepError as error:
            if blamed_file(error, self._group.paths) is None:
                for file in self._group.files:
                    check_digest(self._storage, file)
            raise

    def _made(self) -> list[MadeFile]:
        files = NewFiles(self._target, self._spool, self._layout, self._mappings, self._sources, group=self._group)
        for partition, batches in row_streams(
            self._sources, self._storage, is_mixed=self._group.is_mixed, held_bytes=self._target.held_bytes
        ):
            self._partitions.append(partition)
            files.write(partition, batches, Borders.of_group(self._group, partition))
        for source in self._sources:
            source.check()
        before = sum((source.digest for source in self._sources), RecordDigest())
        after = sum((span.digest for new_file in files.made for span in new_file.found), RecordDigest())
        if before != after:
            raise UpkeepError(
                "the new files would not give back the records of the old ones; these stay. One of them was damaged, or"
                " this is a fault of the archiver: `archiver verify` tells which",
                files=self._group.paths,
                digest=before.text,
                found=after.text,
            )
        return files.made

    def rewritten(self, made: Sequence[MadeFile]) -> RewriteGroup:
        named: set[tuple[int, int]] = set()
        new = tuple(
            NewFile(file=new_file.file, spans=tuple(self._spans(new_file, named)), is_sorted=new_file.file.is_sorted)
            for new_file in made
        )
        return RewriteGroup(paths=self._group.paths, files=new, emptied=tuple(self._emptied(made)))

    def _spans(self, each: MadeFile, named: set[tuple[int, int]]) -> Iterator[RecordSpan]:
        """Deleted rows count in the first file with rows of their span."""
        removed = self._removed(each.partition)
        for span, result in zip(each.spans, each.found, strict=True):
            low, high = np.searchsorted(removed, (span.start, span.end))
            is_first = (each.partition, span.start) not in named
            named.add((each.partition, span.start))
            yield RecordSpan(
                partition=each.partition,
                start_offset=span.start,
                end_offset=span.end,
                rows=result.rows,
                digest=result.digest.text,
                removed=int(high - low) if is_first else 0,
            )

    def _emptied(self, made: Sequence[MadeFile]) -> Iterator[RecordSpan]:
        filled = {item.partition for item in made}
        recorded = {range_.partition for source in self._group.files for range_ in source.ranges}
        deleted = {partition for source in self._sources for partition in source.removed_partitions}
        for partition in sorted((recorded | deleted) - filled):
            removed = self._removed(partition)
            spans = [(item.start, item.end) for item in Borders.of_group(self._group, partition).within(FIRST, END)]
            for start, end in spans or [(int(removed[0]), int(removed[-1]) + 1)]:
                low, high = np.searchsorted(removed, (start, end))
                yield RecordSpan(partition=partition, start_offset=start, end_offset=end, removed=int(high - low))

    def _removed(self, partition: int) -> Offsets:
        return np.sort(np.concatenate([source.removed(partition) for source in self._sources]))


def _opened(storage: TopicStorage, files: Sequence[SourceFile], closing: ExitStack) -> list[OpenFile]:
    with ThreadPoolExecutor(OPENERS, thread_name_prefix="open") as pool:
        opening = [pool.submit(partial(OpenFile.open, storage), file.file) for file in files]
        opened = []
        for future in opening:
            if future.exception() is None:
                opened.append(future.result())
                closing.callback(opened[-1].close)
    for future in opening:
        future.result()
    return opened
