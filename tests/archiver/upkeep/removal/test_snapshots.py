"""Snapshots with removed files that may expire."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyiceberg.table.update import SetPropertiesUpdate, SetSnapshotRefUpdate

from archiver.upkeep.removal.snapshots import HoldingSnapshots, holding_snapshots
from catalog.iceberg.append import prepare
from catalog.model import file_name, new_id
from tests.support.catalog.memory import MemoryCatalog, span

COUNT = "history.expire.min-snapshots-to-keep"
AGE = "history.expire.max-snapshot-age-ms"


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    catalog = MemoryCatalog(tmp_path)
    for number in range(4):
        catalog.send(prepare(catalog.load(), [span(0, number, number + 1)], change=None, commit_id=new_id()))
    return catalog


def holding(catalog: MemoryCatalog) -> HoldingSnapshots:
    names = {file_name(min(catalog.paths()))}
    now_ms = time.time_ns() // 1_000_000 + 60_000
    return holding_snapshots(catalog.load(), names, older_than_ms=now_ms, with_others=True, now_ms=now_ms)


def test_all_but_the_current_one_may_expire(catalog: MemoryCatalog) -> None:
    snapshots = holding(catalog)
    assert (len(snapshots.going) + len(snapshots.young), snapshots.owned, snapshots.settings) == (
        len(snapshots.going) + 1,
        (),
        {},
    )
    assert snapshots.going


@pytest.mark.parametrize(("key", "value"), [(COUNT, "500"), (AGE, "3600000"), (COUNT, "all")])
def test_what_the_owner_keeps_is_named_with_the_setting(catalog: MemoryCatalog, key: str, value: str) -> None:
    going = holding(catalog).going
    catalog.change(SetPropertiesUpdate(updates={key: value}))
    snapshots = holding(catalog)
    assert (snapshots.going, snapshots.owned, snapshots.settings) == ((), going, {key: value})
    assert snapshots.stay


def test_tag_of_a_snapshot_with_removed_files(catalog: MemoryCatalog) -> None:
    first = min(holding(catalog).going, key=lambda snapshot: snapshot.sequence_number or 0)
    catalog.change(SetSnapshotRefUpdate(ref_name="audit", type="tag", snapshot_id=first.snapshot_id, max_ref_age_ms=1))
    catalog.change(SetPropertiesUpdate(updates={COUNT: "500", "history.expire.max-ref-age-ms": "1"}))
    snapshots = holding(catalog)
    assert snapshots.named == {"audit": first.snapshot_id}
    assert first.snapshot_id not in {snapshot.snapshot_id for snapshot in (*snapshots.going, *snapshots.owned)}
