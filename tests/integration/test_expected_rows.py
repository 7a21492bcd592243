"""Expected rows of a table in the registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import psycopg
import pytest

from catalog.errors import RewriteRefused
from catalog.iceberg.settle import Landed, Settled
from catalog.model import FileState, PartitionOffset, TopicRow, TranslatedRange, file_name, new_id
from catalog.offset_range import OffsetRange
from catalog.ranges.holes import Acceptance, AlteredRange, Checked, GoneRows, Hole
from catalog.ranges.rewrite import NewFile, RecordSpan, Rewrite, RewriteGroup
from catalog.registry import Registry
from catalog.registry.restoring import Retained
from tests.support.catalog.memory import file, span
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration


@pytest.fixture
def dsn(stack: Stack) -> str:
    return stack.database()


@pytest.fixture
def registry(dsn: str) -> Iterator[Registry]:
    with Registry(dsn) as registry:
        yield registry


@pytest.fixture
def orders(registry: Registry) -> TopicRow:
    return registry.topics.register(cluster_id="c", topic="orders", topic_id=UUID(int=1), table="kafka.orders")


@pytest.fixture
def committed(registry: Registry, orders: TopicRow) -> tuple[TranslatedRange, ...]:
    ranges = (span(0, 0, 10), span(0, 10, 20), span(0, 20, 30, with_file=False))
    registry.files.stage(orders, ranges, table_offsets={})
    registry.files.confirm(orders, [range_.id for range_ in ranges], commit_id="A")
    return ranges


def rows(registry: Registry, orders: TopicRow) -> list[tuple[int, int, int]]:
    return [(range_.start_offset, range_.rows, range_.file_rows) for range_ in registry.rows.expected_ranges(orders)]


def test_committed_files_are_expected_with_all_their_rows(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    registry.files.stage(orders, (span(0, 30, 40),), table_offsets={})
    assert rows(registry, orders) == [(0, 10, 10), (10, 10, 10)]
    assert registry.files.committed_ends(orders) == {0: PartitionOffset(next_offset=30, leader_epoch=3)}


def test_accepted_rows_are_not_expected_in_repeated_records(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    accepted = (
        Acceptance(range_id=committed[0].id, left=7, erased=3),
        Acceptance(range_id=committed[1].id, left=0, lost=10),
    )
    for _ in range(2):
        registry.rows.record_refill(orders, replaced={}, accepted=accepted, commit_id="B")
        assert rows(registry, orders) == [(0, 7, 10)]
        assert registry.rows.gone(orders) == GoneRows(erased=3, lost=10)


def test_ranges_that_came_back_in_other_files_take_their_place(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    again = (span(0, 10, 14), span(0, 14, 20))
    for _ in range(2):
        registry.rows.record_refill(orders, replaced={committed[1].id: again}, accepted=(), commit_id="B")
        assert rows(registry, orders) == [(0, 10, 10), (10, 4, 4), (14, 6, 6)]
    assert registry.files.counts(orders)[FileState.REPLACED].ranges == 1


def test_a_rewrite_of_a_file_with_missing_rows_excuses_nothing(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    old = committed[0].file
    assert old is not None
    made = RewriteGroup.of_file(old.path, file("file:///made.parquet", rows=8))
    rewrite = Rewrite(commit_id="R", reason="reprocess", schema_version=1, groups=(made,))
    registry.rewrites.begin(orders, rewrite)
    registry.rewrites.finish(orders, rewrite)
    assert rows(registry, orders) == [(0, 10, 8), (10, 10, 10)]
    more = RewriteGroup.of_file("file:///made.parquet", file("file:///more.parquet", rows=9))
    with pytest.raises(RewriteRefused, match="more records"):
        registry.rewrites.begin(orders, replace(rewrite, commit_id="S", groups=(more,)))
    again = RewriteGroup.of_file("file:///made.parquet", file("file:///again.parquet", rows=7))
    registry.rewrites.finish(orders, replace(rewrite, commit_id="T", groups=(again,)))
    assert rows(registry, orders) == [(0, 10, 7), (10, 10, 10)]


def test_what_a_look_found_is_remembered_until_a_refill(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    assert registry.rows.checked(orders) is None
    hole = Hole(range_id=committed[0].id, partition=0, start_offset=3, end_offset=9, rows=2)
    for checked in (Checked(snapshot_id=7), Checked(snapshot_id=None), Checked(snapshot_id=8, holes=(hole,))):
        registry.rows.note_checked(orders, checked)
        assert registry.rows.checked(orders) == checked
        assert registry.rows.last_checked(orders) == checked
    registry.rows.record_refill(orders, replaced={}, accepted=(), commit_id="B")
    assert registry.rows.checked(orders) is None
    assert registry.rows.last_checked(orders) == checked


def test_what_was_altered_outlives_a_refill_of_other_ranges(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    altered = tuple(
        AlteredRange(
            range_id=range_.id, partition=0, start_offset=range_.start_offset, end_offset=range_.end_offset, rows=10
        )
        for range_ in committed[:2]
    )
    noted = Checked(
        snapshot_id=7, altered=altered, uncompared=(OffsetRange(0, 5, 14), OffsetRange(3, 0, 8)), uncompared_rows=20
    )
    registry.rows.note_checked(orders, noted)
    registry.rows.record_refill(orders, replaced={}, accepted=(), commit_id="B", whole=(OffsetRange(0, 0, 9),))
    assert registry.rows.checked(orders) is None
    left = registry.rows.last_checked(orders)
    assert left is not None
    assert (left.altered, left.uncompared) == (altered[1:], (OffsetRange(0, 10, 14), OffsetRange(3, 0, 8)))


def test_comparison_replaces_only_the_check_it_continued(registry: Registry, orders: TopicRow) -> None:
    first, second = (
        Checked(snapshot_id=7, uncompared=(OffsetRange(0, 0, 8),), uncompared_rows=9),
        Checked(snapshot_id=7),
    )
    assert not registry.rows.replace_checked(orders, first, second)
    registry.rows.note_checked(orders, first)
    assert registry.rows.replace_checked(orders, first, second)
    assert not registry.rows.replace_checked(orders, first, second)
    assert registry.rows.checked(orders) == second
    registry.rows.record_refill(orders, replaced={}, accepted=(), commit_id="B")
    assert not registry.rows.replace_checked(orders, second, first)
    assert registry.rows.checked(orders) is None


def test_check_is_dropped_if_a_waiting_range_landed(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    late = span(0, 30, 40)
    registry.files.stage(orders, (late,), table_offsets={})
    registry.rows.note_checked(orders, Checked(snapshot_id=7))
    registry.files.record(orders, Settled(landed=(), refused=(), waiting=(late,)))
    assert registry.rows.checked(orders) == Checked(snapshot_id=7)
    registry.files.record(orders, Settled(landed=(Landed(range=late, commit_id="B"),), refused=(), waiting=()))
    assert registry.rows.checked(orders) is None


def test_ends_of_all_partitions_are_known(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    registry.files.stage(
        orders, (span(0, 30, 40), span(5, 0, 10), unfiled := span(7, 3, 5, with_file=False)), table_offsets={}
    )
    registry.files.confirm(orders, [unfiled.id], commit_id="B")
    ends = {partition: end.next_offset for partition, end in registry.files.committed_ends(orders).items()}
    assert ends == {0: 30, 7: 5}


def test_replaced_file_is_kept_while_its_successor_lacks_rows(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    before, beside = committed[0].files[0], committed[1].files[0]
    for old, rows_left in ((before, 8), (beside, 10)):
        made = file(f"file:///nowhere/{new_id()}.parquet", rows=rows_left)
        group = RewriteGroup.of_file(old.path, made)
        rewrite = Rewrite(commit_id=new_id(), reason="reprocess", schema_version=2, groups=(group,))
        registry.rewrites.begin(orders, rewrite)
        registry.rewrites.finish(orders, rewrite)
    ids = [range_.id for range_ in registry.rows.expected_ranges(orders)]
    files = {item.path: "" for item in (before, beside)}
    names = [file_name(item) for item in files]

    assert rows(registry, orders) == [(0, 10, 8), (10, 10, 10)]
    assert before in registry.rows.kept_files(orders, ids)[ids[0]]
    states = registry.claims.file_states(orders, files)
    assert [states.needs(name) for name in names] == [True, False]
    assert states.lacking == (OffsetRange.half_open(0, 0, 10),)

    erased = Acceptance(range_id=ids[0], left=8, erased=2)
    registry.rows.record_refill(orders, replaced={}, accepted=(erased,), commit_id="R")
    states = registry.claims.file_states(orders, files)
    assert [states.needs(name) for name in names] == [False, False]
    assert states.lacking == ()


def test_kept_files_are_the_newest_first(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    made = [committed[0].files[0]]
    for _ in range(2):
        made.append(file(f"file:///nowhere/orders-{new_id().lower()}.parquet", rows=8))
        group = RewriteGroup.of_file(made[-2].path, made[-1])
        rewrite = Rewrite(commit_id=new_id(), reason="reprocess", schema_version=2, groups=(group,))
        registry.rewrites.begin(orders, rewrite)
        registry.rewrites.finish(orders, rewrite)
    (first, *_) = (expected.id for expected in registry.rows.expected_ranges(orders))
    assert [kept.path for kept in registry.rows.kept_files(orders, [first])[first]] == [
        rewritten.path for rewritten in made[::-1]
    ]


def is_whole(registry: Registry, orders: TopicRow, ranges: tuple[TranslatedRange, ...]) -> list[bool]:
    return [
        registered.is_whole
        for registered in registry.files.held_ranges(orders, [range_.files[0].path for range_ in ranges])
    ]


def test_the_account_says_which_ranges_are_whole(
    registry: Registry, dsn: str, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    assert is_whole(registry, orders, committed[:2]) == [True, True]
    accepted = Acceptance(range_id=committed[0].id, left=7, erased=3)
    registry.rows.record_refill(orders, replaced={}, accepted=(accepted,), commit_id="B")
    assert is_whole(registry, orders, committed[:2]) == [False, True]
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE account SET is_unknown = true WHERE first_offset = 10")
    assert is_whole(registry, orders, committed[:2]) == [False, False]


def test_removals_expect_what_the_account_says(
    registry: Registry, dsn: str, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    def found(below: dict[int, int] | None = None) -> list[tuple[int, int, int, int, int]]:
        return [
            (range_.start_offset, range_.end_offset, range_.rows, range_.expected, len(range_.paths))
            for range_ in registry.retention.ranges(orders, below)
        ]

    assert found() == [(0, 10, 10, 10, 1), (10, 20, 10, 10, 1)]
    assert found({0: 5}) == [(0, 10, 10, 10, 1)]
    with psycopg.connect(dsn) as connection:
        connection.execute("DELETE FROM account WHERE first_offset = 10")
        connection.execute("UPDATE account SET last_offset = 19, expected_rows = 19 WHERE first_offset = 0")
    assert found() == [(0, 20, 20, 19, 2)]
    assert found({0: 5}) == [(0, 20, 20, 19, 2)]
    assert found({0: 0, 1: 9}) == []


def test_waiting_manifests_are_no_retired_files(registry: Registry, orders: TopicRow) -> None:
    retired = Rewrite(commit_id=new_id(), reason="expire", schema_version=1, groups=(), first_offsets={0: 10})
    registry.rewrites.begin(orders, retired)
    registry.rewrites.finish(orders, retired)
    waiting = ("file:///t/metadata/a-m0.avro", "file:///t/data/older.parquet")
    registry.erasures.note_files(orders, [(path, 0, 3, 4) for path in waiting])
    assert [file.paths for file in registry.retention.retired_files(orders)] == [("file:///t/data/older.parquet",)]


@pytest.mark.parametrize("removed", [0, 1])
def test_a_replaced_copy_is_noted_if_its_rows_are_elsewhere(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...], removed: int
) -> None:
    """No range names the copy. Its deleted rows may be nowhere else."""
    copy, made = "file:///copy.parquet", file(f"file:///{new_id()}.parquet", rows=3)
    spans = (RecordSpan(partition=0, start_offset=3, end_offset=7, rows=3, digest=made.digest, removed=removed),)
    group = RewriteGroup(paths=(copy,), files=(NewFile(file=made, spans=spans),))
    rewrite = Rewrite(commit_id=new_id(), reason="compact", schema_version=1, groups=(group,))
    registry.rewrites.begin(orders, rewrite)
    for _ in range(2):
        registry.rewrites.finish(orders, rewrite)
    states = registry.claims.file_states(orders, {copy: ""}).states
    assert states == ({} if removed else {"copy.parquet": FileState.REPLACED})
    assert rows(registry, orders) == [(0, 10, 10), (10, 10, 10)]


def test_the_newest_commit_is_the_latest_that_is_named(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    assert registry.files.newest_commit(orders) is None  # "A" is no id of a commit
    early, late = sorted((new_id(), new_id()))
    erased = Rewrite(commit_id=late, reason="erase", schema_version=1, groups=(), erased=((0, 3, 4),))
    registry.rewrites.begin(orders, erased)
    registry.rewrites.finish(orders, replace(erased, commit_id=early))
    assert registry.files.newest_commit(orders) == late


def test_accepted_offsets_are_known_by_range(
    registry: Registry, orders: TopicRow, committed: tuple[TranslatedRange, ...]
) -> None:
    """Older acceptances have none; offsets whose rows are still expected are ignored."""
    first = Acceptance(
        range_id=committed[0].id, left=7, erased=3, partition=0, start_offset=0, offsets=((2, 4), (6, 7))
    )
    older = Acceptance(range_id=committed[1].id, left=9, lost=1)
    unrecorded = Acceptance(range_id="X", left=3, lost=1, partition=0, start_offset=10, offsets=((15, 17),))
    for _ in range(2):
        registry.rows.record_refill(orders, replaced={}, accepted=(first, older), commit_id="B")
    registry.rows.record_refill(orders, replaced={}, accepted=(unrecorded,), commit_id="C")
    earlier, later = registry.rows.expected_ranges(orders)
    assert (earlier.accepted, earlier.accepted_rows, earlier.gone, earlier.unplaced) == (first.offsets, 3, 3, 0)
    assert (later.accepted, later.accepted_rows) == (((15, 17),), 1)


def test_rewrites_prove_first_offsets(registry: Registry, orders: TopicRow) -> None:
    """Also before they are settled. A rebuild proves only what the journal names."""

    def restore(journaled: dict[int, int]) -> None:
        retained = Retained(first_offsets=journaled, claimed_offsets={0: 50})
        state = registry.ledger.load(orders)
        registry.restore(orders, table_uuid=UUID(int=2), state=state, records=(), ranges=(), retained=retained)

    restore({})
    assert registry.retention.proven_first_offsets(orders, {0: 50}) == {}
    restore({0: 50})
    assert registry.retention.proven_first_offsets(orders, {0: 60}) == {0: 50}
    rewrite = Rewrite(commit_id=new_id(), reason="expire", schema_version=1, groups=(), first_offsets={0: 70, 1: 9})
    registry.rewrites.begin(orders, rewrite)
    assert registry.retention.proven_first_offsets(orders, {0: 60, 1: 10}) == {0: 60, 1: 9}
    registry.rewrites.finish(orders, rewrite)
    assert registry.retention.proven_first_offsets(orders, {0: 90}) == {0: 70}
