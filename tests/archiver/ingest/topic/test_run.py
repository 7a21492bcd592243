"""A run commits its staged ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from pyiceberg.table.update import SetPropertiesUpdate

from archiver.commit.presence import Presence
from archiver.config import TopicConfig, load_config
from archiver.errors import (
    ArchiverError,
    BrokerUnavailable,
    CorruptBatch,
    NoProgress,
    ParseHalted,
    SchemaRegistryUnavailable,
    UnrecognizedHalted,
)
from archiver.ingest.job import ArchiveJob
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.task.values import TaskResult
from archiver.ingest.topic import run as running
from archiver.ingest.topic.memory import TopicMemory
from archiver.ingest.topic.prefetch import Prefetched
from archiver.ingest.topic.run import TopicRun
from archiver.kafka.broker import EpochEnd
from archiver.storage.journal import TableJournal
from archiver.topics.inspection import ArchivedOffsets, SeenTopic
from archiver.topics.opening import OpenedTopic
from archiver.topics.seen_partition import SeenPartition
from catalog.errors import CatalogUnreachable
from catalog.iceberg import properties as keys
from catalog.iceberg.offsets import encode_offsets
from catalog.model import PartitionOffset, Staged, TopicRow, TranslatedRange, new_id
from catalog.ranges.fence import fence
from tests.support.catalog.memory import TOPIC, MemoryCatalog, change
from tests.support.catalog.staging import CatalogOfOne, NoneMissing, StagedRanges

CONFIG = TopicConfig(name="orders", table=TOPIC.table)
WHOLE = PlannedRange(partition=0, start_offset=0, end_offset=10, owns_head=True)
SECOND = PlannedRange(partition=0, start_offset=5, end_offset=10, owns_head=False)


class Fence(StagedRanges):
    def __init__(self) -> None:
        super().__init__()
        self.epochs: dict[int, int] = {}
        self.rejected: list[TranslatedRange] = []

    def accepted_ends(self, _: Any) -> dict[int, PartitionOffset]:
        return {
            partition: PartitionOffset(next_offset=end, leader_epoch=self.epochs[partition])
            for partition, end in self.ends.items()
        }

    def keep_rejected(self, _: Any, ranges: Sequence[TranslatedRange], *, reason: str) -> None:
        self.rejected += ranges

    def stage(  # type: ignore[override]
        self, _: Any, ranges: Sequence[TranslatedRange], *, table_offsets: Mapping[int, PartitionOffset]
    ) -> Staged:
        done = fence(ranges, self.accepted_ends(_))
        for item in done.accepted:
            self.waiting[item.id] = item
            self.ends[item.partition] = item.end_offset
            self.epochs[item.partition] = item.leader_epoch
        return Staged(accepted=done.accepted, rejected=tuple(range_ for range_ in ranges if range_.id in done.rejected))


class EpochsOfLeader:
    def __init__(self) -> None:
        self.ends: dict[int, EpochEnd] = {}
        self.requests: list[int] = []

    def log_sizes(self, _: str, partitions: Sequence[int]) -> dict[int, int]:
        return {}

    def end_of_epoch(self, _: str, epochs: Mapping[int, int]) -> dict[int, EpochEnd]:
        ((partition, epoch),) = epochs.items()
        self.requests.append(epoch)
        return {partition: self.ends[epoch]} if epoch in self.ends else {}


class World:
    def __init__(self, folder: Path) -> None:
        self.memory = MemoryCatalog(folder / "table")
        self.fence = Fence()
        made = StagedRanges()
        self.first, self.second = made.stage(folder, 0, 5), made.stage(folder, 0, 5)
        opened = OpenedTopic(
            topic=TOPIC, table=self.memory.load(), row=cast("Any", None), change=change(), journal=TableJournal()
        )
        self.missing: Any = NoneMissing()
        self.epochs = EpochsOfLeader()
        self.catalog = cast("Any", CatalogOfOne(self.memory, self.memory.apply))
        self.catalog.housekeep = lambda *_: 0
        registry = SimpleNamespace(files=self.fence, missing=self.missing)
        self.run = TopicRun(
            CONFIG,
            opened,
            cast("Any", SimpleNamespace(brokers=self.epochs, registry=registry, catalog=self.catalog)),
            observer=lambda _: None,
            memory=TopicMemory(),
        )

    def plan(self, monkeypatch: pytest.MonkeyPatch, *, is_stale: bool = False) -> tuple[Any, ...]:
        table = self.memory.load()
        is_known = 0 in self.fence.ends and not is_stale
        offsets = {0: PartitionOffset(next_offset=self.fence.ends[0])} if is_known else {}
        seen = SeenTopic(
            table=table,
            partitions=(SeenPartition(partition=0, log_start=0, last_stable=10, known=offsets.get(0)),),
            unknown={},
            table_offsets=table.offsets,
        )
        monkeypatch.setattr(running, "inspect_partitions", lambda *_, **__: seen)
        archived = ArchivedOffsets(table=table, table_offsets=table.offsets, known=offsets, missing=())
        return self.run.plan(Prefetched(archived=archived))

    def end_second_task(self) -> None:
        self.run.take(SECOND, TaskResult(ranges=(self.second,)))

    def others_fill_the_gap(self, *, epoch: int = 3) -> None:
        self.fence.stage(TOPIC, [replace(self.first, leader_epoch=epoch)], table_offsets={})

    @property
    def committed(self) -> set[str]:
        return {Path(path).stem for path in self.memory.paths()}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    assert made.plan(monkeypatch)
    made.end_second_task()
    made.run.commit()
    assert made.committed == set()
    return made


def test_what_the_end_of_a_run_stages_is_committed_in_that_run(world: World) -> None:
    world.others_fill_the_gap()
    world.run.finish()
    assert world.committed == {world.first.id, world.second.id}
    assert world.fence.pending(None) == ()
    assert world.run.report().commits == 1


@pytest.mark.parametrize("knows", [True, False], ids=["of one log", "of two"])
def test_waiting_ranges_commit_only_on_the_same_log(world: World, *, knows: bool) -> None:
    """The gap was filled before an election: the leader says whether it has those records."""
    world.epochs.ends = {
        2: EpochEnd(leader_epoch=2, end_offset=5 if knows else 4),
        3: EpochEnd(leader_epoch=3, end_offset=10),
    }
    world.others_fill_the_gap(epoch=2)
    world.run.finish()
    assert world.epochs.requests == [2, 3]
    assert world.fence.ends == {0: 10 if knows else 5}
    assert world.fence.rejected == []
    assert (world.second.id in world.committed) is knows


def test_waiting_ranges_of_a_truncated_log_are_dropped(world: World) -> None:
    """Another archiver filled the gap after an unclean election."""
    world.others_fill_the_gap(epoch=4)
    world.run.finish()
    assert world.fence.ends == {0: 5}
    assert world.second.id not in world.committed


@pytest.mark.parametrize("epoch", [3, 2])
def test_ranges_after_a_rejected_one_are_checked_again(world: World, epoch: int) -> None:
    """The archiver that was faster may have read another log."""
    world.others_fill_the_gap(epoch=epoch)
    planned = PlannedRange(partition=0, start_offset=0, end_offset=5, owns_head=True)
    mine = replace(world.first, id=new_id())
    world.run.take(planned, TaskResult(ranges=(mine,)))
    world.run.commit()
    same = epoch == 3
    assert (world.second.id in world.committed) is same
    assert mine.id not in world.committed


def test_ranges_after_an_unfilled_gap_are_rejected(world: World) -> None:
    world.run.finish()
    assert world.fence.rejected == [world.second]
    assert world.committed == set()


def test_what_a_plan_without_tasks_stages_is_committed_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.others_fill_the_gap()
    assert world.plan(monkeypatch) == ()
    assert world.committed == {world.first.id, world.second.id}


def test_a_run_that_staged_nothing_commits_nothing(world: World) -> None:
    world.fence.pending = lambda _: pytest.fail("there is nothing to commit")  # type: ignore[method-assign]
    world.run.finish()
    assert world.fence.waiting == {}


def test_a_run_is_done_once_all_up_to_its_end_is_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = World(tmp_path)
    made.run.commit()  # as every run begins
    assert not made.run.is_done
    made.plan(monkeypatch)
    made.run.take(WHOLE, TaskResult(ranges=(made.first,)))
    made.run.commit()
    assert not made.run.is_done
    made.plan(monkeypatch)
    made.end_second_task()
    assert not made.run.is_done
    made.run.commit()
    assert made.run.is_done
    assert made.committed == {made.first.id, made.second.id}


@pytest.mark.parametrize("trouble", ["an object gone", "a table that others moved", "a catalog away", "a task's error"])
def test_a_run_looks_again_while_the_table_lacks_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    made = World(tmp_path)
    made.plan(monkeypatch)
    made.run.take(WHOLE, TaskResult(ranges=(made.first,)))
    match trouble:
        case "an object gone":
            made.end_second_task()
            Path(made.second.files[0].path.removeprefix("file://")).unlink()
            monkeypatch.setattr(Presence, "_believe", lambda *_: None)
            made.missing.reject = lambda _, ids, **__: made.fence.settle(set(ids), made.fence.refused)  # type: ignore[method-assign]
        case "a table that others moved":
            made.end_second_task()
            moved = {0: PartitionOffset(next_offset=7, leader_epoch=3)}
            made.memory.change(SetPropertiesUpdate(updates={keys.OFFSETS: encode_offsets(moved)}))
        case "a catalog away":
            made.end_second_task()
            made.catalog.commit = unreachable
        case _:
            made.run.take(SECOND, TaskResult(ranges=(), error=BrokerUnavailable("away")))
    made.run.commit()
    assert not any(offset.next_offset >= 10 for offset in made.memory.load().offsets.values())
    assert not made.run.is_done


def unreachable(*_: Any, **__: Any) -> None:
    raise CatalogUnreachable("away")


@pytest.mark.parametrize("kind", [SchemaRegistryUnavailable, ParseHalted, UnrecognizedHalted])
def test_refused_record_limits_retries_to_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[ArchiverError]
) -> None:
    made = World(tmp_path)

    def take(planned: tuple[int, int], result: TaskResult) -> None:
        start, end = planned
        range_ = PlannedRange(partition=0, start_offset=start, end_offset=end, owns_head=True)
        made.run.take(range_, result)

    def spans() -> tuple[tuple[int, int], ...]:
        (backlog,) = made.plan(monkeypatch)
        return cast("tuple[tuple[int, int], ...]", backlog.spans)

    refused = TaskResult(ranges=(), error=kind("no", topic="orders", partition=0, offset=3))
    assert spans() == ((0, 10),)
    take((0, 10), refused)
    for _ in range(2):
        assert spans() == ((0, 1),)
        take((0, 1), refused)
    assert spans() == ((0, 1),)
    take((0, 1), TaskResult(ranges=(made.first,)))
    assert spans() == ((5, 10),)


@pytest.mark.parametrize("is_stale", [True, False], ids=["plans never learn of it", "plans begin after it"])
def test_always_rejected_partition_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_stale: bool
) -> None:
    made = World(tmp_path)
    for _ in range(5):
        (backlog,) = made.plan(monkeypatch, is_stale=is_stale)
        ((start, end),) = backlog.spans
        theirs, mine = (
            replace(made.first, id=new_id(), start_offset=start, end_offset=start + 1, leader_epoch=3) for _ in range(2)
        )
        made.fence.stage(TOPIC, [theirs], table_offsets={})
        assert not made.run.given_up
        planned = PlannedRange(partition=0, start_offset=start, end_offset=end, owns_head=True)
        made.run.take(planned, TaskResult(ranges=(mine,)))
        if made.run.given_up:
            break
    assert made.run.given_up == ((0,) if is_stale else ())
    assert [type(error) for _, error in made.run.report().failures] == ([NoProgress] if is_stale else [])


def test_topic_memory_ends_when_its_table_is_recreated(tmp_path: Path) -> None:
    path = tmp_path / "archiver.toml"
    path.write_text(
        '[kafka]\n"bootstrap.servers" = "127.0.0.1:1"\n[catalog]\nuri = "http://127.0.0.1:1"\n'
        '[registry]\ndsn = "postgresql://127.0.0.1:1/none"\n[topics.orders]\n'
    )
    job = ArchiveJob(load_config(path, {}), engine=cast("Any", None))
    table, anew = MemoryCatalog(tmp_path / "table").load(), MemoryCatalog(tmp_path / "anew").load()
    again = TopicRow(id=7, cluster_id="cluster", topic="orders", topic_id=UUID(int=2), table=TOPIC.table)

    def memory(topic: TopicRow, table: Any) -> TopicMemory:
        opened = OpenedTopic(topic=topic, table=table, row=cast("Any", None), change=change())
        return job._memory(opened)

    first = memory(TOPIC, table)
    first.begun[0] = 5
    assert memory(TOPIC, table) is first
    assert memory(TOPIC, anew).begun == {}
    assert memory(again, table).begun == {}


def test_what_comes_before_a_corrupt_batch_is_archived_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = World(tmp_path)
    corrupt = TaskResult(ranges=(), error=CorruptBatch("A batch does not match its checksum", base_offset=5))
    assert made.plan(monkeypatch)
    made.run.take(SECOND, corrupt)
    assert made.run.given_up == ()
    (backlog,) = made.plan(monkeypatch)
    assert backlog.spans == ((0, 10),)
    made.run.take(WHOLE, TaskResult(ranges=(made.first,), error=corrupt.error))
    assert made.run.given_up == (0,)
    made.run.commit()
    assert len(made.committed) == 1
