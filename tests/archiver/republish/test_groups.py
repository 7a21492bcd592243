"""Transferred groups skip no record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from archiver.kafka.group_offsets import CommittedOffset
from archiver.republish.groups import GroupTranslation
from archiver.republish.offset_runs import Runs
from archiver.republish.progress_log import Begun, Course, Entry, MovedUpTo
from archiver.republish.report import GroupReport

COURSE = Course(cluster_id="c", topic="t", table_id="1", target="copy", target_id="2", start="", where="")
BEGUN = Begun(partition=0, offset=0, course=COURSE)


@dataclass(slots=True)
class World:
    entries: list[Entry]
    end: int
    others: range = range(0)
    source: int = 0
    target: int | None = None
    earliest: int = 0
    committed: dict[int, CommittedOffset] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def list_offsets(self, topic: str, partitions: tuple[int, ...], at: str) -> dict[int, int]:
        assert topic == "copy"
        self.asked.append(at)
        return dict.fromkeys(partitions, self.earliest if at == "earliest" else self.end)

    def described(self, _topic: str) -> Any:
        return SimpleNamespace(topic_id=None)

    def log_entries(self) -> Iterator[Entry]:
        self.asked.append("entries")
        yield from self.entries

    def offsets(self, _brokers: object, _group: str, topic: str, _partitions: object) -> dict[int, CommittedOffset]:
        offset = self.source if topic == "t" else self.target
        return {} if offset is None else {0: CommittedOffset(offset=offset, metadata="m")}

    def read(self, _partition: int, start: int, end: int) -> Iterator[Any]:
        assert start >= self.earliest
        rows = [offset for offset in self.others if start <= offset < end]
        yield SimpleNamespace(records=pa.record_batch({"offset": pa.array(rows, pa.int64())}))

    def is_active(self, _group: str) -> bool:
        return False

    def commit(self, _group: str, _topic: str, offsets: Mapping[int, CommittedOffset]) -> None:
        self.committed.update(offsets)


def carried(world: World) -> GroupReport:
    anything: Any = world
    log: Any = SimpleNamespace(entries=world.log_entries)
    translation = GroupTranslation(
        source=anything,
        source_brokers=anything,
        topic="t",
        destination=anything,
        destination_brokers=anything,
        target="copy",
        partitions=(0,),
        committed=world.offsets,
        reader=lambda *_: world.read,
    )
    (report,) = translation.run(("g",), log)
    assert report.problem is None
    return report


def moved(base: int, count: int = 100) -> MovedUpTo:
    return MovedUpTo(partition=0, sequence=1, next_offset=count, runs=Runs.of(np.arange(count, dtype=np.int64), base))


def appended(**more: Any) -> World:
    return World([BEGUN, moved(5_000)], end=5_101, others=range(5_000), source=40, **more)


def test_a_group_new_to_the_target_goes_on_at_its_record() -> None:
    world = appended()
    assert carried(world).moved == {0: 5_040}
    assert world.committed == {0: CommittedOffset(offset=5_040, metadata="m")}


def test_a_group_that_still_reads_others_records_stays_there() -> None:
    world = appended(target=3_000)
    report = carried(world)
    assert (report.behind, report.moved, world.committed) == ((0,), {}, {})
    assert not report.succeeded


@pytest.mark.parametrize("target", [5_000, 5_039])
def test_a_group_that_has_read_them_goes_on(target: int) -> None:
    report = carried(appended(target=target))
    assert (report.moved, report.succeeded) == ({0: 5_040}, True)


def test_a_group_that_is_further_stays_there() -> None:
    world = appended(target=5_041)
    assert carried(world).ahead == (0,)
    assert not world.committed


def test_aborted_or_deleted_first_records_block_no_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    aborted = World([BEGUN, moved(50)], end=151, source=40, target=0)
    assert carried(aborted).moved == {0: 90}
    assert carried(appended(target=3_000, earliest=5_000)).moved == {0: 5_040}


def test_where_nothing_was_moved_a_group_goes_on_at_the_end() -> None:
    nothing = MovedUpTo(partition=0, sequence=1, next_offset=100, runs=Runs.joined([]))
    world = World([BEGUN, nothing], end=5_000, others=range(5_000), source=40)
    assert carried(world).moved == {0: 5_000}
    assert world.asked == ["latest_stable", "entries"]
    world.target = 3_000
    assert carried(world).behind == (0,)
