"""Registry and journal hold the same ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random

import psycopg
import pytest

from catalog.current_ranges import current_ranges
from catalog.errors import RewriteRefused
from catalog.journal_entries import JournaledCommit
from catalog.model import TopicRow, new_id
from catalog.ranges.holes import Acceptance
from catalog.ranges.rewrite import NewFile, RecordSpan, Rewrite, RewriteGroup
from catalog.ranges.stored_ranges import StoredRange
from catalog.registry import Registry, file_rows, replaced_rows
from tests.support.catalog.memory import file, span
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

STEPS = 12


@pytest.fixture(scope="module")
def dsn(stack: Stack) -> str:
    return stack.database()


@pytest.fixture(scope="module")
def registry(dsn: str) -> Iterator[Registry]:
    with Registry(dsn) as registry:
        yield registry


class Twins:
    def __init__(self, dsn: str, registry: Registry, random: Random) -> None:
        self._dsn = dsn
        self._registry = registry
        self._random = random
        self._topic: TopicRow = registry.topics.register(
            cluster_id="c", topic=(name := unique("t")), topic_id=None, table=f"kafka.{name}"
        )
        self._end = 0
        self.commits: list[tuple[str, JournaledCommit]] = []
        self._accepted: list[Acceptance] = []
        self.refused = 0

    def step(self) -> None:
        self._random.choice(
            [self.archive, self.archive, self.regroup, self.regroup, self.split, self.retire, self.accept]
        )()

    def archive(self) -> None:
        range_ = span(0, self._end, self._end + 10)
        rows = self._random.choice([(), (10,), (10,), (3, 7)])
        range_ = replace(range_, topic=self._topic.topic, files=tuple(self._file(row).file for row in rows))
        commit_id = new_id()
        assert self._registry.files.stage(self._topic, [range_], table_offsets={}).accepted == (range_,)
        self._registry.files.confirm(self._topic, [range_.id], commit_id=commit_id)
        self._journal(JournaledCommit(commit_id=commit_id, ranges=(range_,)))
        self._end += 10

    def regroup(self) -> None:
        old = self._some()
        if not old:
            return
        start, end = old[0].start_offset, old[-1].end_offset
        inner = range(start + 1, end)
        borders = [start, *sorted(self._random.sample(inner, min(len(inner), self._random.randrange(3)))), end]
        spans = list(pairwise(borders))
        left = sum(range_.rows for range_ in old)
        files = []
        for number, (low, high) in enumerate(spans):
            rows = left if number == len(spans) - 1 else self._random.randint(0, left)
            left -= rows
            files.append(self._file(rows, RecordSpan(partition=0, start_offset=low, end_offset=high, rows=rows)))
        self._rewrite(RewriteGroup(paths=tuple(path for range_ in old for path in range_.paths), files=tuple(files)))

    def split(self) -> None:
        old = [range_ for range_ in self.held() if range_.paths]
        if not old:
            return
        range_ = self._random.choice(old)
        chosen = self._random.choice([part for part in range_.files if part.file is not None])
        about = RecordSpan(partition=0, start_offset=range_.start_offset, end_offset=range_.end_offset)
        first = self._random.randint(0, chosen.rows)
        files = tuple(self._file(rows, replace(about, rows=rows)) for rows in (first, chosen.rows - first))
        self._rewrite(RewriteGroup(paths=(str(chosen.path),), files=files))

    def retire(self) -> None:
        old = self._some()[:1]
        if old:
            (range_,) = old
            gone = RecordSpan(
                partition=0,
                start_offset=range_.start_offset,
                end_offset=range_.end_offset,
                retired=range_.expected,
                removed=range_.rows - range_.expected,
            )
            self._rewrite(RewriteGroup(paths=range_.paths, emptied=(gone,), why="too old"))

    def accept(self) -> None:
        old = [range_ for range_ in self.held() if range_.expected]
        if not old:
            return
        range_ = self._random.choice(old)
        accepted = Acceptance(
            range_id=range_.id,
            left=range_.expected - 1,
            erased=1,
            paths=range_.paths,
            partition=0,
            start_offset=range_.start_offset,
        )
        self._registry.rows.record_refill(self._topic, replaced={}, accepted=[accepted], commit_id=new_id())
        self._accepted.append(accepted)

    def held(self) -> list[StoredRange]:
        with psycopg.connect(self._dsn) as connection:
            rows = list(file_rows.held(connection, self._topic, "state = 'committed'"))
        assert all(row.is_whole for row in rows)
        return [row.range for row in rows]

    def replaced(self, dsn: str, topic: TopicRow) -> list[tuple[object, ...]]:
        with psycopg.connect(dsn) as connection:
            return connection.execute(
                "SELECT path, partition, start_offset, end_offset, rows, coalesce(expected_rows, rows), digest, file,"
                " replaced_by, reason FROM files WHERE topic_id = %s AND state = 'replaced' ORDER BY 1, 2, 3",
                (topic.id,),
            ).fetchall()

    def check_replaced(self) -> None:
        files = current_ranges(self._shuffled(), self._accepted, keeps_replaced=True).replaced
        fresh = self._registry.topics.register(
            cluster_id="c", topic=(name := unique("t")), topic_id=None, table=f"kafka.{name}"
        )
        with psycopg.connect(self._dsn) as connection:
            assert [replaced_rows.restore(connection, fresh, files) for _ in range(2)] == [len(files), 0]
        assert self.replaced(self._dsn, fresh) == self.replaced(self._dsn, self._topic)

    def journaled(self) -> list[StoredRange]:
        ranges = current_ranges(self._shuffled(), self._accepted).ranges
        return sorted(ranges, key=lambda range_: range_.start_offset)

    def _shuffled(self) -> list[tuple[str, JournaledCommit]]:
        entries = [*self.commits, *self._random.sample(self.commits, len(self.commits) // 2)]
        self._random.shuffle(entries)
        return entries

    def _some(self) -> list[StoredRange]:
        ranges = self.held()
        if not ranges:
            return []
        start = self._random.randrange(len(ranges))
        chosen = []
        for range_ in ranges[start : start + 3]:
            if not range_.paths:
                break
            chosen.append(range_)
        return chosen

    def _rewrite(self, group: RewriteGroup) -> None:
        rewrite = Rewrite(commit_id=new_id(), reason="test", schema_version=2, groups=(group,))
        try:
            self._registry.rewrites.begin(self._topic, rewrite)
        except RewriteRefused:
            self.refused += 1
            return
        for _ in range(2):  # as after a kill
            self._registry.rewrites.finish(self._topic, rewrite)
        self._journal(JournaledCommit(commit_id=rewrite.commit_id, rewrite=rewrite))

    def _journal(self, commit: JournaledCommit) -> None:
        self.commits.append((f"{len(self.commits):04d}", JournaledCommit.from_json(commit.to_json())))

    @staticmethod
    def _file(rows: int, *spans: RecordSpan) -> NewFile:
        return NewFile(file=file(f"file:///data/t-{new_id().lower()}.parquet", rows=rows), spans=spans)


@pytest.mark.parametrize("seed", range(8))
def test_they_hold_the_same(dsn: str, registry: Registry, seed: int) -> None:
    twins = Twins(dsn, registry, Random(seed))
    twins.archive()
    for _ in range(STEPS):
        twins.step()
    ranges = twins.held()
    assert twins.journaled() == ranges
    twins.check_replaced()
    assert all(before.end_offset == after.start_offset for before, after in pairwise(ranges)), "a chain without a gap"
    assert ranges[0].start_offset == 0
    archived = sum(sum(file.rows for file in range_.files) for _, commit in twins.commits for range_ in commit.ranges)
    accounted = sum(entry.expected + sum(part.erased + part.retired for part in entry.files) for entry in ranges)
    assert accounted == archived, "every record is expected, or told to be gone"
