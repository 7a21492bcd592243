"""Erasures that a table's owner blocks."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.table.update import SetPropertiesUpdate

from archiver.terminal.expire_screen import purge_remarks
from archiver.terminal.owner_words import erasure_remark, snapshot_words
from archiver.topics.owner_status import open_erasures, owner_remarks
from archiver.upkeep.removal.purge import Purged
from catalog.registry.erased_offsets import CONDITION, SEARCHED_MS, WAITS_FOR
from tests.support.catalog.memory import MemoryCatalog

KEPT = {WAITS_FOR: {"settings": {"history.expire.min-snapshots-to-keep": "500"}, "snapshots": [11, 12]}}


def told(value: dict[str, object], catalog: MemoryCatalog | None = None) -> str:
    (erasure,) = open_erasures({"01E": value}, catalog.load() if catalog else None)
    return erasure_remark("orders", erasure)


def test_snapshots_that_the_owner_keeps() -> None:
    assert told({CONDITION: "x", SEARCHED_MS: 1, **KEPT}) == (
        "erasure 01E isn't finished: 2 snapshots (11, 12) with erased records are kept by"
        " `history.expire.min-snapshots-to-keep` = `500`. To expire them, run `archiver erase orders --finish"
        " --expire-protected-snapshots`"
    )


def test_files_that_the_owner_keeps(tmp_path: Path) -> None:
    """The table's current state counts, not the earlier reason."""
    catalog = MemoryCatalog(tmp_path)
    catalog.change(SetPropertiesUpdate(updates={"gc.enabled": " FALSE "}))
    remark = told({CONDITION: "x", SEARCHED_MS: 1, **KEPT}, catalog)
    assert remark.startswith("erasure 01E isn't finished: `gc.enabled` = ` FALSE ` forbids the deletion of files.")
    (also,) = owner_remarks(catalog.load(), 86_400.0)
    assert "no file of the table is deleted, no snapshot expires, and `archiver erase` is refused" in also


def test_erasures_that_wait_for_nothing_of_the_owner() -> None:
    assert told({}) == "erasure 01E isn't finished: run `archiver erase orders --finish`"
    assert told({CONDITION: "x"}).endswith("Run it again with its condition")
    assert owner_remarks(None, 0.0) == ()


def test_many_snapshots_are_counted() -> None:
    assert snapshot_words(range(7)) == "7 snapshots (0, 1, 2, 3, 4, …)"
    assert snapshot_words([4]) == "1 snapshot (4)"


def test_retired_files_of_a_shared_table() -> None:
    assert purge_remarks(Purged(left=("a", "b"), shared=True)) == [
        (
            "2 removed files stay in the store, and no snapshot expires: the table's `gc.enabled` is not `true`, as"
            " another table may share its files. Once it is `true`, the next run deletes them"
        )
    ]
