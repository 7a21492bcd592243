"""The state of a table's head by its history."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import (
    AddSchemaUpdate,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
)

from catalog.errors import RolledBack, TableError
from catalog.iceberg.append import prepare
from catalog.iceberg.commit import Backoff, Committed, commit
from catalog.iceberg.expiry import SnapshotRetention, expirable
from catalog.iceberg.lineage import Descent, Head, check_lineage, descent, head_of, lacks_columns, set_back, since
from catalog.iceberg.refill_commit import PlannedAnew, Refill, Refilled, commit_refill
from catalog.iceberg.settle import Landed, settle
from catalog.model import TranslatedRange, new_id
from catalog.ranges.spans import uncovered
from tests.support.catalog.memory import ID, NOTE, MemoryCatalog, file, schema, span
from tests.support.catalog.table_changes import updates_of

AT_ONCE = Backoff(pause=lambda _: None)


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    made = MemoryCatalog(tmp_path)
    for start in (0, 10, 20):
        append(made, span(0, start, start + 10))
    return made


def append(catalog: MemoryCatalog, *ranges: TranslatedRange) -> None:
    catalog.apply(prepare(catalog.load(), ranges, change=None, commit_id=new_id()))


def foreign_append(catalog: MemoryCatalog) -> None:
    updates = updates_of(
        catalog.load().iceberg, lambda transaction: transaction.update_snapshot().fast_append().commit()
    )
    catalog.change(*updates)


def set_main(catalog: MemoryCatalog, place: int) -> None:
    snapshot_id = catalog.metadata.snapshots[place].snapshot_id
    catalog.change(SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=snapshot_id))


def expire(catalog: MemoryCatalog, *places: int) -> None:
    """As Java does: children of expired snapshots keep a missing parent."""
    gone = [catalog.metadata.snapshots[index].snapshot_id for index in places]
    parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in catalog.metadata.snapshots}
    catalog.change(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": gone}))
    left = [
        snapshot.model_copy(update={"parent_snapshot_id": parents[snapshot.snapshot_id]})
        for snapshot in catalog.metadata.snapshots
    ]
    catalog.metadata = catalog.metadata.model_copy(update={"snapshots": left})


def without_property(catalog: MemoryCatalog) -> None:
    catalog.change(RemovePropertiesUpdate(removals=["archiver.head"]))


def seen(catalog: MemoryCatalog) -> Descent:
    head = head_of(catalog.metadata)
    assert head is not None
    return descent(catalog.metadata, head)


def test_each_commit_is_the_head(catalog: MemoryCatalog) -> None:
    newest = catalog.metadata.snapshots[-1]
    assert head_of(catalog.metadata) == Head(snapshot_id=newest.snapshot_id, sequence=newest.sequence_number or 0)
    without_property(catalog)
    assert head_of(catalog.metadata) == Head(snapshot_id=newest.snapshot_id, sequence=newest.sequence_number or 0)


def test_a_head_that_cannot_be_read_is_named(catalog: MemoryCatalog) -> None:
    catalog.change(SetPropertiesUpdate(updates={"archiver.head": "the second one"}))
    with pytest.raises(TableError, match=r"archiver\.head"):
        check_lineage(catalog.load())


@pytest.mark.parametrize("has_property", [True, False])
def test_a_table_set_back_is_told(catalog: MemoryCatalog, *, has_property: bool) -> None:
    if not has_property:
        without_property(catalog)
    set_main(catalog, 0)
    with pytest.raises(RolledBack) as raised:
        check_lineage(catalog.load())
    assert raised.value.context["missing"] == "partition 0 [10, 30)"
    set_main(catalog, 2)
    check_lineage(catalog.load())


def test_a_table_set_back_is_told_though_others_commit_on_top(catalog: MemoryCatalog) -> None:
    set_main(catalog, 1)
    foreign_append(catalog)
    assert seen(catalog) is Descent.ROLLED_BACK


def test_a_table_set_back_is_told_though_the_head_has_expired(catalog: MemoryCatalog) -> None:
    set_main(catalog, 0)
    expire(catalog, 1, 2)
    assert seen(catalog) is Descent.ROLLED_BACK
    foreign_append(catalog)
    assert seen(catalog) is Descent.ROLLED_BACK


def test_a_table_without_a_current_snapshot_is_set_back(catalog: MemoryCatalog) -> None:
    catalog.change(RemoveSnapshotRefUpdate(ref_name="main"))
    catalog.metadata = catalog.metadata.model_copy(update={"current_snapshot_id": None})
    assert seen(catalog) is Descent.ROLLED_BACK


def test_what_others_put_on_top_keeps_the_head(catalog: MemoryCatalog) -> None:
    foreign_append(catalog)
    assert seen(catalog) is Descent.KEPT


def test_where_the_history_has_expired_nothing_is_said(catalog: MemoryCatalog) -> None:
    foreign_append(catalog)
    foreign_append(catalog)
    expire(catalog, 0, 1, 2, 3)
    assert seen(catalog) is Descent.UNKNOWN
    check_lineage(catalog.load())


def test_all_snapshots_are_known_until_one_expires(catalog: MemoryCatalog) -> None:
    assert since(catalog.metadata, None) == tuple(reversed(catalog.metadata.snapshots))
    expire(catalog, 0)
    assert since(catalog.metadata, None) is None


def test_a_table_that_was_just_made_has_no_snapshots_since(tmp_path: Path) -> None:
    assert since(MemoryCatalog(tmp_path).metadata, None) == ()


def test_table_without_main_branch_is_not_a_new_table(catalog: MemoryCatalog) -> None:
    catalog.change(RemoveSnapshotRefUpdate(ref_name="main"))
    catalog.metadata = catalog.metadata.model_copy(update={"current_snapshot_id": None, "snapshots": []})
    assert since(catalog.metadata, None) is None


def test_a_history_without_its_newest_snapshot_shows_nothing(catalog: MemoryCatalog) -> None:
    """No engine writes a current id without its snapshot; it must not look like a new table."""
    catalog.metadata = catalog.metadata.model_copy(update={"snapshots": []})
    assert since(catalog.metadata, None) is None


def test_replaced_table_shows_only_the_history_since(catalog: MemoryCatalog) -> None:
    """CREATE OR REPLACE TABLE begins a history with a snapshot without parent."""
    foreign_append(catalog)
    newest = catalog.metadata.snapshots[-1].model_copy(update={"parent_snapshot_id": None})
    catalog.metadata = catalog.metadata.model_copy(update={"snapshots": [*catalog.metadata.snapshots[:-1], newest]})
    assert since(catalog.metadata, None) is None


def test_nothing_is_committed_to_a_table_that_was_set_back(catalog: MemoryCatalog) -> None:
    set_main(catalog, 0)
    before = catalog.metadata.current_snapshot_id
    with pytest.raises(RolledBack):
        commit(
            load=catalog.load,
            send=catalog.send,
            ranges=[span(0, 30, 40)],
            change=None,
            commit_id=new_id(),
            backoff=AT_ONCE,
        )
    assert catalog.metadata.current_snapshot_id == before


def test_nothing_is_settled_by_a_table_that_was_set_back(catalog: MemoryCatalog) -> None:
    last = span(0, 30, 40)
    append(catalog, last)
    set_main(catalog, 0)
    with pytest.raises(RolledBack):
        settle(catalog.load(), (last,))
    settled = settle(catalog.load(), (last,), after_rollback=True)
    assert [type(outcome) for outcome in settled.landed] == [Landed]


def test_our_own_expiry_keeps_the_head_and_what_is_on_top(catalog: MemoryCatalog) -> None:
    head = catalog.metadata.snapshots[-1].snapshot_id
    for _ in range(4):
        foreign_append(catalog)
    few = SnapshotRetention(seconds=0.0, keep=1, least=1, batch=1)
    going = {expired.snapshot_id for expired in expirable(catalog.metadata, few, now_ms=1 << 60)}
    assert going == {snapshot.snapshot_id for snapshot in catalog.metadata.snapshots[:2]}
    assert head not in going


def refill_of(catalog: MemoryCatalog) -> Refill:
    return Refill(
        commit_id=new_id(), parent=catalog.metadata.current_snapshot_id, files=(file("file:///back.parquet"),)
    )


def sent(catalog: MemoryCatalog, refill: Refill) -> object:
    return commit_refill(load=catalog.load, send=catalog.send, refill=refill, change=None, backoff=AT_ONCE)


@pytest.mark.parametrize("fate", ["apply", "lose_answer", "lose_request", "delay", "conflict", "fail"])
def test_a_refill_is_there_once_and_mends_the_history(catalog: MemoryCatalog, fate: str) -> None:
    set_main(catalog, 0)
    offsets = catalog.load().offsets
    catalog.script = [getattr(catalog, fate)]
    assert isinstance(sent(catalog, refill_of(catalog)), Refilled)
    assert catalog.paths().count("file:///back.parquet") == 1
    check_lineage(catalog.load())
    assert catalog.load().offsets == offsets
    done = commit(
        load=catalog.load,
        send=catalog.send,
        ranges=[span(0, 30, 40)],
        change=None,
        commit_id=new_id(),
        backoff=AT_ONCE,
    )
    assert isinstance(done, Committed)


def test_a_refill_of_a_table_that_moved_is_planned_anew(catalog: MemoryCatalog) -> None:
    set_main(catalog, 0)
    planned = refill_of(catalog)
    foreign_append(catalog)
    assert isinstance(sent(catalog, planned), PlannedAnew)
    assert "file:///back.parquet" not in catalog.paths()


def test_incomplete_refill_leaves_the_table_set_back(catalog: MemoryCatalog) -> None:
    set_main(catalog, 0)
    part = Refill(commit_id=new_id(), parent=catalog.metadata.current_snapshot_id, heals=False)
    assert isinstance(sent(catalog, part), Refilled)
    assert seen(catalog) is Descent.ROLLED_BACK


def test_what_a_table_lost_is_what_follows_its_ancestors(catalog: MemoryCatalog) -> None:
    assert set_back(catalog.load()) == {}
    set_main(catalog, 0)
    assert set_back(catalog.load()) == {0: [(10, 30)]}
    expire(catalog, 1, 2)
    assert set_back(catalog.load()) == {0: [(10, 30)]}


@pytest.mark.parametrize(
    ("cover", "left"),
    [
        ((), [(0, 10), (20, 30)]),
        (((0, 30),), []),
        (((2, 4), (4, 6), (25, 40)), [(0, 2), (6, 10), (20, 25)]),
        (((0, 10), (12, 18)), [(20, 30)]),
    ],
)
def test_what_no_span_covers_is_left(cover: tuple[tuple[int, int], ...], left: list[tuple[int, int]]) -> None:
    assert uncovered(((0, 10), (20, 30)), cover) == left


def test_created_schema_with_other_ids_is_not_suspicious(catalog: MemoryCatalog) -> None:
    foreign_append(catalog)
    newest = catalog.metadata.snapshots[-1]
    compaction = newest.model_copy(update={"summary": Summary(Operation.REPLACE)})
    created = assign_fresh_schema_ids(catalog.metadata.schema()).model_copy(update={"schema_id": 7})
    catalog.change(AddSchemaUpdate(schema=created))
    assert not created.field_ids <= catalog.metadata.schema().field_ids
    assert not lacks_columns(catalog.metadata, compaction)
    wider = schema(ID, NOTE).model_copy(update={"schema_id": 8})
    catalog.change(AddSchemaUpdate(schema=wider))
    assert lacks_columns(catalog.metadata, compaction)
