"""Maintenance after another engine's changes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from archiver.upkeep.refill.report import Fate
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.verify.findings import FaultKind
from tests.chaos.commands import Commands
from tests.chaos.other_engine import OtherEngine, Place, places_of
from tests.support.archive import partitioned
from tests.support.archive.job_runs import numbered
from tests.support.archive.readers import Seen, from_archive, from_kafka
from tests.support.catalog.foreign_writes import table_of
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

START = 1_767_225_600_000
EACH = 20
"""Records of a partition in each commit."""


class Archived:
    def __init__(self, stack: Stack, *, partitions: int = 1, **settings: Any) -> None:
        self.stack = stack
        self.partitions = partitions
        self.topic = stack.topic(partitions)
        path = stack.config({self.topic: {"snapshot_retention": "0s", **settings}})
        self.commands = Commands(path=path, topic=self.topic)
        self.other = OtherEngine(lambda: table_of(stack, path, self.topic))
        self._turns = 0
        for _ in range(2):
            self.produce()
            assert self.commands.archive().succeeded

    def produce(self) -> None:
        first = self._turns * EACH * self.partitions
        self._turns += 1
        records = numbered(range(first, first + EACH * self.partitions), self.partitions, timestamp=START)
        self.stack.produce(self.topic, *({**record, "key": b"k" + record["value"]} for record in records))

    def check(self, *gone: Place) -> None:
        assert self.replayed() == self.records(gone)
        assert self.commands.refill().mended == ()
        report = self.commands.verify()
        assert (report.faults, report.rows) == ((), len(self.records(gone)))

    def replayed(self) -> list[Seen]:
        return from_archive(self.commands.path, self.topic, self.partitions)

    def records(self, gone: Iterable[Place] = ()) -> list[Seen]:
        left = set(gone)
        return [
            record
            for record in from_kafka(self.stack, self.topic, self.partitions)
            if (record.partition, record.offset) not in left
        ]

    def mixed(self) -> None:
        self.other.rewrite()
        assert self.commands.erase("partition = 0 and offset = 1").succeeded
        self.check((0, 1))
        (file,) = self.other.files()
        assert len({partition for partition, _ in places_of(file.rows)}) == self.partitions

    def lose_registry(self, *, with_journal: bool) -> None:
        self.commands = self.commands.without_registry(self.stack, with_journal=with_journal)


def by_kafka_partition(rows: pa.Table) -> Iterable[pa.Table]:
    partitions = [partition for partition, _ in places_of(rows)]
    return [
        rows.filter(pa.array([partition == number for partition in partitions])) for number in sorted(set(partitions))
    ]


BY_COLUMNS = {"partition_by": ["day", "bucket(2, key.__raw__)"]}


@pytest.mark.parametrize("verb", ["erase", "expire"])
def test_refilled_rows_beside_delete_files_can_be_removed(stack: Stack, verb: str) -> None:
    archived = Archived(stack)
    archived.other.delete_positions([(0, 2), (0, 3), (0, 4)])
    assert archived.commands.refill().rows(Fate.FROM_FILE) == 3
    archived.check()
    if verb == "erase":
        done = archived.commands.erase("partition = 0 and offset = 3")
        assert (done.rows, done.failures, done.succeeded) == (1, {}, True)
        archived.check((0, 3))
    else:
        retired = archived.commands.expire(RetireLimits(offset=EACH), rows=True)
        assert (retired.kept, retired.failures, retired.first_offsets) == ({}, {}, {0: EACH})
        archived.check(*((0, offset) for offset in range(EACH)))


def test_rows_of_one_partition_are_retired_from_a_mixed_file(stack: Stack) -> None:
    archived = Archived(stack, partitions=2)
    archived.other.rewrite()
    retired = archived.commands.expire(RetireLimits(offset=5, partitions=frozenset({0})), rows=True)
    assert (retired.failures, retired.error, retired.first_offsets) == ({}, None, {0: 5})
    archived.check(*((0, offset) for offset in range(5)))


def test_refill_after_compaction_of_ranges_of_several_files(stack: Stack) -> None:
    archived = Archived(stack, **BY_COLUMNS)
    archived.other.delete_positions([(0, 2), (0, 3), (0, 4)])
    assert archived.commands.compact().error is None
    assert not any(file.has_deletes for file in archived.other.files())
    done = archived.commands.refill()
    assert (done.rows(Fate.LEFT), done.succeeded) == (0, True)
    archived.check()


def test_erasure_ends_after_a_refill_and_a_compaction_of_deletes(stack: Stack) -> None:
    archived = Archived(stack, snapshot_retention="1d")
    archived.other.rewrite(by_kafka_partition)
    archived.other.set_back()
    archived.other.delete_positions([(0, 2), (0, 3), (0, 4)])
    assert archived.commands.refill().rows(Fate.FROM_FILE) == 3
    assert archived.commands.compact(min_files=9).error is None
    done = archived.commands.erase("partition = 0 and offset = 27")
    assert (done.rows, done.unfinished, done.purged.left) == (1, (), ())
    archived.check((0, 27))


@pytest.mark.parametrize("verb", ["erase", "expire", "compact"])
def test_split_of_a_file_with_two_ranges(stack: Stack, verb: str) -> None:
    archived = Archived(stack, partitions=2)
    archived.mixed()
    archived.other.rewrite(by_kafka_partition)
    assert len(archived.other.files()) == 2
    archived.check((0, 1))
    match verb:
        case "erase":
            done = archived.commands.erase("partition = 0 and offset = 3")
            assert (done.rows, done.failures, done.succeeded) == (1, {}, True)
            archived.check((0, 1), (0, 3))
        case "expire":
            limits = RetireLimits(offset=EACH, partitions=frozenset({1}))
            retired = archived.commands.expire(limits, rows=True)
            assert (retired.failures, retired.error, retired.first_offsets) == ({}, None, {1: EACH})
            archived.check((0, 1), *((1, offset) for offset in range(EACH)))
        case _:
            compacted = archived.commands.compact()
            assert (compacted.error, compacted.failures) == (None, {})
            archived.check((0, 1))


def test_rows_of_files_without_origin_stay_archived(stack: Stack) -> None:
    archived = Archived(stack, partitions=2)
    archived.mixed()
    archived.lose_registry(with_journal=False)
    archived.commands.rebuild()
    assert archived.replayed() == archived.records([(0, 1)])
    faults = archived.commands.verify().faults
    assert [fault for fault in faults if fault.kind is FaultKind.FOREIGN or "remove them" in fault.message] == []
    archived.produce()
    assert archived.commands.archive().succeeded
    assert archived.commands.compact().error is None
    done = archived.commands.erase("partition = 0 and offset = 3")
    assert (done.rows, done.failures, done.succeeded) == (1, {}, True)
    assert archived.replayed() == archived.records([(0, 1), (0, 3)])


def test_deleted_first_rows_are_unaccounted_after_a_rebuild(stack: Stack) -> None:
    archived = Archived(stack)
    first = min(archived.other.files(), key=lambda file: min(places_of(file.rows)))
    archived.other.remove_files(lambda file: file.data.file_path == first.data.file_path)
    archived.lose_registry(with_journal=False)
    for rebuilt in (False, True):
        if rebuilt:
            assert archived.commands.rebuild().unknown == ((0, 0, EACH),)
        report = archived.commands.verify(asks_registry=rebuilt)
        unaccounted = [fault for fault in report.faults if fault.kind is FaultKind.UNACCOUNTED]
        assert [(fault.start_offset, fault.end_offset) for fault in unaccounted] == [(0, EACH)]
    archived.produce()
    assert archived.commands.archive().succeeded
    assert [record.offset for record in archived.replayed()] == list(range(EACH, 3 * EACH))


def test_retirement_after_a_rollback_and_a_rebuild(stack: Stack) -> None:
    archived = Archived(stack)
    assert archived.commands.compact(min_files=2).error is None
    archived.other.set_back()
    assert archived.commands.refill().succeeded
    archived.lose_registry(with_journal=True)
    archived.commands.rebuild()
    retired = archived.commands.expire(RetireLimits(offset=5, partitions=frozenset({0})), rows=True)
    assert (retired.error, retired.failures, retired.first_offsets) == (None, {}, {0: 5})
    assert archived.commands.verify().faults == ()
    archived.lose_registry(with_journal=True)
    archived.commands.rebuild()
    archived.check(*((0, offset) for offset in range(5)))


def test_rebuild_knows_columns_that_another_engine_renamed(stack: Stack, tmp_path: Path) -> None:
    archived = Archived(stack, **partitioned.settings(tmp_path, "day"))
    with archived.other.table.update_schema() as update:
        update.rename_column(("val", "price"), "cost")
    archived.other.rewrite()
    archived.lose_registry(with_journal=False)
    assert archived.commands.rebuild().ranges == 1
    assert archived.replayed() == archived.records()


def test_refill_of_a_range_with_accepted_rows(stack: Stack) -> None:
    archived = Archived(stack)
    archived.other.delete_positions([(0, 2), (0, 3)])
    assert archived.commands.refill(accept_removed=True).succeeded
    for gone in (5, 7):
        archived.other.delete_positions([(0, gone), (0, gone + 1)])
        assert archived.commands.refill().succeeded
        archived.check((0, 2), (0, 3))
        archived.lose_registry(with_journal=True)
        archived.commands.rebuild()


def test_refill_of_a_range_with_erased_records_after_a_rebuild(stack: Stack) -> None:
    archived = Archived(stack)
    assert archived.commands.erase("partition = 0 and offset = 1").succeeded
    archived.other.delete_positions([(0, 5), (0, 6)])
    assert archived.commands.compact(min_files=2).error is None
    archived.lose_registry(with_journal=True)
    archived.commands.rebuild()
    assert archived.commands.refill().succeeded
    archived.check((0, 1))


def test_orphans_keep_missing_rows_after_a_rebuild(stack: Stack) -> None:
    """A rebuilt registry doesn't know the file, and no snapshot names it."""
    archived = Archived(stack)
    first, second = sorted(file.data.file_path for file in archived.other.files())
    archived.other.delete_positions([(0, 5), (0, 6)])
    assert archived.commands.compact(min_files=2).error is None
    archived.other.expire_snapshots()
    archived.lose_registry(with_journal=True)
    archived.commands.rebuild()
    done = archived.commands.orphans()
    paths = {orphan.path for orphan in done.deleted}
    assert (first in paths, second in paths, done.failures) == (False, True, {})


@pytest.mark.parametrize(
    ("how", "with_journal"),
    [
        ("by metadata", True),
        ("merge-on-read", True),
        ("merge-on-read", False),
        ("by metadata", False),
    ],
)
def test_rebuild_after_a_refill_of_one_of_several_files(stack: Stack, how: str, *, with_journal: bool) -> None:
    archived = Archived(stack, **BY_COLUMNS)
    first = min(archived.other.files(), key=lambda file: min(places_of(file.rows)))
    if how == "by metadata":
        archived.other.remove_files(lambda file: file.data.file_path == first.data.file_path)
    else:
        archived.other.delete_positions(places_of(first.rows))
    assert archived.commands.refill().rows(Fate.FROM_FILE) == first.rows.num_rows
    archived.check()
    archived.lose_registry(with_journal=with_journal)
    archived.commands.rebuild()
    archived.check()
    done = archived.commands.erase("partition = 0 and offset = 3")
    assert (done.rows, done.failures, done.succeeded) == (1, {}, True)
    assert archived.replayed() == archived.records([(0, 3)])
