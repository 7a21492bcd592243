"""The owner's `history.expire.*` against `snapshot_retention`."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.table.update import SetPropertiesUpdate, SetSnapshotRefUpdate

from catalog.iceberg.append import prepare
from catalog.iceberg.expiry import SnapshotRetention, expirable
from catalog.iceberg.owner_retention import OwnerRetention
from catalog.iceberg.owner_settings import keeping_old_metadata, owner_remarks, warn_once
from catalog.model import new_id
from tests.support.catalog.memory import MemoryCatalog, span

FEW = SnapshotRetention(seconds=0.0, keep=5, least=2, batch=1)
HOUR = 3_600_000
COUNT = "history.expire.min-snapshots-to-keep"
AGE = "history.expire.max-snapshot-age-ms"


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    catalog = MemoryCatalog(tmp_path)
    for number in range(12):
        catalog.send(prepare(catalog.load(), [span(0, number, number + 1)], change=None, commit_id=new_id()))
    return catalog


def set_properties(catalog: MemoryCatalog, **values: str) -> None:
    catalog.change(SetPropertiesUpdate(updates=values))


def going(catalog: MemoryCatalog, retention: SnapshotRetention = FEW, *, later_ms: int = HOUR) -> int:
    now_ms = time.time_ns() // 1_000_000 + later_ms
    return len(expirable(catalog.metadata, retention, now_ms=now_ms))


def remarks(catalog: MemoryCatalog, retention: SnapshotRetention = FEW) -> tuple[str, ...]:
    return owner_remarks(catalog.load(), retention)


def test_without_properties_nothing_changes(catalog: MemoryCatalog) -> None:
    assert going(catalog) == 7
    assert remarks(catalog) == ()
    assert OwnerRetention.of(catalog.metadata).settings == {}


@pytest.mark.parametrize(
    ("least", "gone"), [("1", 7), ("9", 3), ("500", 0), ("0", 7), ("-3", 7), ("many", 0), ("", 0), ("11", 1)]
)
def test_min_snapshots_to_keep(catalog: MemoryCatalog, least: str, gone: int) -> None:
    set_properties(catalog, **{COUNT: least})
    assert going(catalog) == gone


@pytest.mark.parametrize(
    ("age", "gone"), [(2 * HOUR, 0), (HOUR // 2, 7), (9_223_372_036_854_775_807, 0), (0, 7), (-1, 7), ("1d", 0)]
)
def test_max_snapshot_age(catalog: MemoryCatalog, age: int, gone: int) -> None:
    set_properties(catalog, **{AGE: str(age)})
    assert going(catalog) == gone


def test_owner_is_stronger_than_the_limit_of_metadata(catalog: MemoryCatalog) -> None:
    crowded = replace(FEW, most_bytes=1)
    assert going(catalog, crowded) == 10
    set_properties(catalog, **{COUNT: "12"})
    assert going(catalog, crowded) == 0


def test_what_is_set_for_the_main_branch_counts(catalog: MemoryCatalog) -> None:
    set_properties(catalog, **{COUNT: "1"})
    current = catalog.metadata.current_snapshot_id
    catalog.change(
        SetSnapshotRefUpdate.model_validate(
            {"ref-name": "main", "type": "branch", "snapshot-id": current, "min-snapshots-to-keep": 11}
        )
    )
    assert going(catalog) == 1


@pytest.mark.parametrize("key", [COUNT, AGE])
@pytest.mark.parametrize("value", ["many", " 5", "5.0", "", "1e3", "\u0665"])
def test_nothing_expires_by_a_value_that_is_no_number(catalog: MemoryCatalog, key: str, value: str) -> None:
    set_properties(catalog, **{key: value})
    assert going(catalog) == 0
    assert remarks(catalog) == (f"`{key}` is {value!r}, which is no number: no snapshot expires until it is one",)


def test_tag_of_an_old_snapshot_stays_whatever_max_ref_age_says(catalog: MemoryCatalog) -> None:
    first = catalog.metadata.snapshots[0].snapshot_id
    catalog.change(SetSnapshotRefUpdate(ref_name="audit", type="tag", snapshot_id=first, max_ref_age_ms=1))
    set_properties(catalog, **{"history.expire.max-ref-age-ms": "1"})
    assert going(catalog) == 6


def test_longer_age_of_the_table_wins(catalog: MemoryCatalog) -> None:
    set_properties(catalog, **{AGE: str(30 * 24 * HOUR)})
    assert remarks(catalog, SnapshotRetention()) == (
        (
            "`history.expire.max-snapshot-age-ms` is 2592000000 (30d) and `snapshot_retention` is 1d: the table's"
            " property wins, as it keeps snapshots longer"
        ),
    )


def test_longer_snapshot_retention_wins(catalog: MemoryCatalog) -> None:
    set_properties(catalog, **{AGE: str(HOUR)})
    assert remarks(catalog, SnapshotRetention(seconds=90.0 * 60)) == (
        (
            "`history.expire.max-snapshot-age-ms` is 3600000 (1h) and `snapshot_retention` is 90m:"
            " `snapshot_retention` wins, as it keeps snapshots longer"
        ),
    )


def test_more_snapshots_than_the_archiver_keeps(catalog: MemoryCatalog) -> None:
    set_properties(catalog, **{COUNT: "500"})
    (remark,) = remarks(catalog, SnapshotRetention())
    assert "`history.expire.min-snapshots-to-keep` is 500" in remark
    assert "newest 100 snapshots" in remark
    assert "the table's property wins" in remark


def test_remarks_are_logged_once(catalog: MemoryCatalog, caplog: pytest.LogCaptureFixture) -> None:
    set_properties(catalog, **{AGE: "7777777777", "gc.enabled": "FALSE"})
    logged: set[str] = set()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            warn_once(catalog.load(), SnapshotRetention(seconds=4_321.0), logged)
    assert len(caplog.messages) == len(set(caplog.messages)) == 2
    assert all(message.startswith("kafka.orders: `") for message in caplog.messages)


def test_paths_that_are_not_followed_are_named(catalog: MemoryCatalog) -> None:
    set_properties(catalog, **{"write.object-storage.enabled": "TRUE", "write.folder-storage.path": "s3://other/x"})
    hashes, folder = remarks(catalog)
    assert "`write.object-storage.enabled` is `TRUE`" in hashes
    assert "`write.folder-storage.path` is `s3://other/x`" in folder
    assert all(catalog.load().data_location in remark for remark in (hashes, folder))


def test_data_path_is_followed_without_a_remark(catalog: MemoryCatalog) -> None:
    set_properties(catalog, **{"write.data.path": "s3://other/x", "write.folder-storage.path": "s3://other/x/"})
    assert catalog.load().data_location == "s3://other/x"
    assert remarks(catalog) == ()


@pytest.mark.parametrize(
    ("gc_enabled", "deletes", "is_changed"),
    [("false", "true", True), (" False", "TRUE", True), ("true", "true", False), ("false", "false", False)],
)
def test_commit_keeps_old_metadata_of_shared_tables(gc_enabled: str, deletes: str, is_changed: bool) -> None:
    properties = {"gc.enabled": gc_enabled, "write.metadata.delete-after-commit.enabled": deletes}
    assert bool(keeping_old_metadata(properties)) is is_changed
    assert keeping_old_metadata({"gc.enabled": gc_enabled}) == ()
