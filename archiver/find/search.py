"""Searches topics, best files first, and ends when the rest can't change the answer.

Files and blocks wait in a heap by the best possible time of their records. A match is given when none of them can have
a better one.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from archiver.archive.records import AS_CONSUMED, RecordShape
from archiver.archive.table_files import TableFile
from archiver.errors import ObjectMissing
from archiver.find.block_matches import BlockMatches, MatchedBlock, block_matches
from archiver.find.file_cache import FileCache
from archiver.find.order import OrderedMatches, PendingMatches, SortPlace, place_of
from archiver.find.point_reads import read_points
from archiver.find.query import FindQuery
from archiver.find.report import BY_FILTER, BY_INDEX, BY_STATISTICS, BY_VALUES, FindReport
from archiver.find.source import FileQueue, FindSource
from archiver.observer import Observer, ignore
from archiver.records.block_facts import BlockFacts, time_bounds
from archiver.storage.segment import Block

PARALLEL: Final = 8
"""Files and blocks that are read at a time. Each takes the columns of the condition in one row group."""
OPEN_FILES: Final = 32
AT_ONCE: Final = 1_024
"""Records that are read and given together."""
AT_ONCE_BYTES: Final = 64 << 20
"""About as many bytes: columns of 2 GiB can't be put together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """`total` rises when a file has blocks to read."""

    done: int
    total: int
    records: int


@dataclass(frozen=True, slots=True)
class _Unit:
    """`best` is the best possible time of its records."""

    best: int
    topic: int
    file: TableFile
    block: Block | None = None


@dataclass(frozen=True, slots=True)
class _Queue:
    topic: int
    files: FileQueue

    def take(self) -> _Unit:
        best = self.files.best
        return _Unit(best, self.topic, self.files.take())


_Waiting: TypeAlias = tuple[int, int, _Unit | _Queue]
_Answer: TypeAlias = BlockMatches | list[_Unit]


@dataclass(slots=True)
class Search:
    """A search for records. Iterate once; closing the iterator closes the files."""

    query: FindQuery
    sources: Sequence[FindSource]
    report: FindReport = field(default_factory=FindReport)
    shape: RecordShape = AS_CONSUMED
    parallel: int = PARALLEL
    observer: Observer[Searched] = ignore

    def __iter__(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield nonempty batches of records with their topics, in order.

        Continues with the current snapshot if a rewrite removes a file. Raises StorageError and ReplayError.
        """
        self.report.topics = len(self.sources)
        after: SortPlace | None = None
        while True:
            try:
                for matches, batches in self._pass(after):
                    self.report.add(records=sum(batch.num_rows for _, batch in batches))
                    yield from batches
                    after = place_of(matches, -1)
            except ObjectMissing as missing:
                fresh = [source.refreshed(self.report) for source in self.sources]
                if not any(fresh):
                    raise
                self.sources = [new or old for new, old in zip(fresh, self.sources, strict=True)]
                path = str(missing.context.get("file", ""))
                if any(source.snapshot.files.named([path]) for source in self.sources):
                    raise
            else:
                return

    def files(self) -> Iterator[tuple[str, TableFile]]:
        """Yield files that other engines need to read, with their topics."""
        files = FileCache(most=OPEN_FILES)
        try:
            for _, unit, units in self._opened(files):
                if units:
                    yield self.sources[unit.topic].archive.topic, unit.file
        finally:
            files.close()

    def count(self) -> int:
        """Count matches as `matches` does."""
        return sum(map(len, self.matches()))

    def matches(self) -> Iterator[BlockMatches]:
        """Yield matches by the condition's columns alone, in no order. Raises as iterating does."""
        files = FileCache(most=OPEN_FILES)
        pool = ThreadPoolExecutor(self.parallel, thread_name_prefix="find")
        try:
            total = 0
            for done, (number, _, units) in enumerate(self._opened(files), start=1):
                for answer in pool.map(lambda unit: self._work(unit, files), units):
                    assert isinstance(answer, BlockMatches)
                    total += len(answer)
                    yield answer
                self.observer(Searched(done=done, total=number, records=total))
        finally:
            pool.shutdown(cancel_futures=True)
            files.close()
        self.report.add(matches=total, records=total)

    def _opened(self, files: FileCache) -> Iterator[tuple[int, _Unit, list[_Unit]]]:
        """Yield the number of all files, each file, and its blocks to read."""
        self.report.topics = len(self.sources)
        queues = self._queues()
        total = sum(len(queue.files) for queue in queues)
        units = (queue.take() for queue in queues for _ in range(len(queue.files)))
        with ThreadPoolExecutor(self.parallel, thread_name_prefix="open") as pool:
            try:
                while part := list(islice(units, OPEN_FILES)):
                    for unit, blocks in zip(part, pool.map(lambda it: self._work(it, files), part), strict=True):
                        assert isinstance(blocks, list)
                        yield total, unit, blocks
            finally:
                pool.shutdown(cancel_futures=True)

    def notes(self) -> list[str]:
        texts = ((source.archive.topic, source.unjudged.text(source.archive.topic)) for source in self.sources)
        return [f"{topic}: {text}" for topic, text in texts if text is not None]

    def _pass(self, after: SortPlace | None) -> Iterator[tuple[OrderedMatches, list[tuple[str, pa.RecordBatch]]]]:
        left = None if self.query.limit is None else self.query.limit - self.report.records
        pending = PendingMatches(self.query.oldest_first, left, after)
        files = FileCache(most=OPEN_FILES)
        numbers = count()
        queues = self._queues()
        waiting: list[_Waiting] = [(queue.files.best, next(numbers), queue) for queue in queues if len(queue.files)]
        heapq.heapify(waiting)
        running: dict[Future[_Answer], int] = {}
        done = 0
        pool = ThreadPoolExecutor(self.parallel, thread_name_prefix="find")
        try:
            while left != 0:
                while waiting and len(running) < self.parallel:
                    unit = _next(waiting, numbers)
                    running[pool.submit(self._work, unit, files)] = unit.best
                bound = min([*running.values(), *(best for best, _, _ in waiting[:1])], default=None)
                ready = pending.ready(bound)
                rows = _rows_at_once(ready, pending.blocks)
                for start in range(0, len(ready), rows):
                    part = ready.part(start, start + rows if left is None else min(start + rows, start + left))
                    if not len(part):
                        break
                    batches = read_points(part, pending.blocks, files, self.shape, pool)
                    self.report.add(point_rows=len(part))
                    left = None if left is None else left - len(part)
                    yield part, batches
                if not running or left == 0:
                    break
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    del running[future]
                    done += 1
                    self._integrate(future.result(), pending, waiting, numbers)
                unread = len(running) + sum(isinstance(it, _Unit) for _, _, it in waiting)
                total = done + unread + sum(len(queue.files) for queue in queues)
                self.observer(Searched(done=done, total=total, records=self.report.records))
        finally:
            pool.shutdown(cancel_futures=True)
            files.close()

    def _integrate(
        self, answer: _Answer, pending: PendingMatches, waiting: list[_Waiting], numbers: Iterator[int]
    ) -> None:
        match answer:
            case BlockMatches() as matches:
                self.report.add(matches=len(matches))
                topic = next(i for i, source in enumerate(self.sources) if source is matches.matched.source)
                pending.add(matches, topic)
            case units:
                for unit in units:
                    heapq.heappush(waiting, (unit.best, next(numbers), unit))

    def _queues(self) -> list[_Queue]:
        return [_Queue(topic, source.files(self.report)) for topic, source in enumerate(self.sources)]

    def _work(self, unit: _Unit, files: FileCache) -> _Answer:
        source = self.sources[unit.topic]
        with files.using(source.storage, unit.file) as opened:
            if unit.block is not None:
                return block_matches(source, unit.file, opened, unit.block, self.report)
            blocks = opened.reader.blocks()
            facts = [
                BlockFacts(opened.reader, block, source.columns, source.storage.mappings, source.facts.key_id)
                for block in blocks
            ]
            left = [fact for fact in facts if fact.by_statistics(source.query.where)]
            listed = [fact for fact in left if fact.by_sets(source.query.where)]
            indexed = [fact for fact in listed if source.index.may_hold(source.query.where, unit.file.path, fact)]
            kept = self._filtered(source, indexed)
            self.report.add(files_opened=1, blocks=len(blocks))
            out = {
                BY_STATISTICS: len(facts) - len(left),
                BY_VALUES: len(left) - len(listed),
                BY_INDEX: len(listed) - len(indexed),
                BY_FILTER: len(indexed) - len(kept),
            }
            self.report.rule_out(blocks=Counter(out))
            return [self._block(unit, fact) for fact in kept]

    def _filtered(self, source: FindSource, facts: list[BlockFacts]) -> list[BlockFacts]:
        if len(facts) <= 1:
            return [fact for fact in facts if fact.by_filters(source.query.where)]
        with ThreadPoolExecutor(min(len(facts), self.parallel)) as pool:
            kept = pool.map(lambda fact: fact.by_filters(source.query.where), facts)
            return [fact for fact, is_kept in zip(facts, kept, strict=True) if is_kept]

    def _block(self, unit: _Unit, fact: BlockFacts) -> _Unit:
        low, high = time_bounds(fact.reader, fact.block)
        return _Unit(max(unit.best, low if self.query.oldest_first else -high), unit.topic, unit.file, fact.block)


def _next(waiting: list[_Waiting], numbers: Iterator[int]) -> _Unit:
    _, _, item = heapq.heappop(waiting)
    if isinstance(item, _Unit):
        return item
    unit = item.take()
    if len(item.files):
        heapq.heappush(waiting, (item.files.best, next(numbers), item))
    return unit


def _rows_at_once(ready: OrderedMatches, blocks: Sequence[MatchedBlock]) -> int:
    used = [blocks[number].block for number in np.unique(ready.blocks).tolist()]
    heaviest = max((block.size_bytes // max(1, block.rows) for block in used), default=0)
    return max(1, min(AT_ONCE, AT_ONCE_BYTES // max(1, heaviest)))
