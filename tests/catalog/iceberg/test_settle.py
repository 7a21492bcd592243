from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.table.update import RemoveSnapshotsUpdate

from catalog.errors import TableError
from catalog.iceberg.append import prepare
from catalog.iceberg.settle import Landed, Settled, settle
from catalog.model import TranslatedRange
from tests.support.catalog.memory import MemoryCatalog, span


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    return MemoryCatalog(tmp_path)


def append(catalog: MemoryCatalog, commit_id: str, *ranges: TranslatedRange) -> None:
    catalog.apply(prepare(catalog.load(), ranges, change=None, commit_id=commit_id))


def expire_all_but_the_last(catalog: MemoryCatalog) -> None:
    old = [snapshot.snapshot_id for snapshot in catalog.metadata.snapshots[:-1]]
    catalog.change(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": old}))


def reasons(settled: Settled) -> list[str]:
    return [refusal.reason for refusal in settled.refused]


def test_ranges_that_continue_the_table_wait(catalog: MemoryCatalog):
    append(catalog, "A", span(0, 0, 10))
    following = (span(0, 10, 20), span(0, 20, 30), span(1, 5, 9))
    assert settle(catalog.load(), following).waiting == following


def test_what_a_commit_brought_has_landed(catalog: MemoryCatalog):
    first, empty, second = span(0, 0, 10), span(0, 10, 15, with_file=False), span(0, 15, 20)
    append(catalog, "A", first, empty)
    a = catalog.load().snapshot_id
    append(catalog, "B", second)
    b = catalog.load().snapshot_id
    landed = settle(catalog.load(), (second, empty, first)).landed
    assert landed == (
        Landed(range=first, commit_id="A", snapshot_id=a),
        Landed(range=empty, commit_id="A", snapshot_id=a),
        Landed(range=second, commit_id="B", snapshot_id=b),
    )


def test_the_same_offsets_from_elsewhere_refuse_ours(catalog: MemoryCatalog):
    ours, theirs = span(0, 0, 10), span(0, 0, 10)
    append(catalog, "THEIRS", theirs)
    settled = settle(catalog.load(), (ours,))
    assert settled.landed == settled.waiting == ()
    assert reasons(settled) == ["commit THEIRS brought its offsets from elsewhere"]


def test_other_borders_refuse_ours_and_what_follows(catalog: MemoryCatalog):
    append(catalog, "THEIRS", span(0, 0, 15))
    settled = settle(catalog.load(), (span(0, 0, 10), span(0, 10, 20), span(0, 20, 30)))
    assert settled.landed == settled.waiting == ()
    assert reasons(settled) == [
        "commit THEIRS brought its offsets from elsewhere",
        "the table holds its offsets up to 15 from elsewhere",
        "starts at 20, its partition ends at 15",
    ]


def test_offsets_decide_where_history_has_expired(catalog: MemoryCatalog):
    ours = span(0, 0, 10)
    append(catalog, "A", ours)
    append(catalog, "B", span(0, 10, 20))
    expire_all_but_the_last(catalog)
    assert settle(catalog.load(), (ours,)).landed == (Landed(range=ours, commit_id=None),)


def test_nothing_to_settle_reads_nothing(catalog: MemoryCatalog):
    assert settle(catalog.load(), ()) == Settled(landed=(), refused=(), waiting=())


def test_a_range_ahead_of_a_stale_read_waits(catalog: MemoryCatalog):
    append(catalog, "A", span(0, 0, 10))
    stale = catalog.load()
    append(catalog, "B", span(0, 10, 20))
    following = (span(0, 20, 30), span(0, 30, 40))
    assert settle(stale, following).waiting == following
    assert settle(catalog.load(), following).waiting == following


def test_a_range_lands_with_all_its_files_or_not_at_all(catalog: MemoryCatalog):
    first, second = (span(0, 0, 10).files[0] for _ in range(2))
    whole = replace(span(0, 0, 10), files=(first, second))
    following = span(0, 10, 20)
    assert settle(catalog.load(), (whole, following)).waiting == (whole, following)
    append(catalog, "A", whole)
    assert catalog.paths() == sorted([first.path, second.path])
    settled = settle(catalog.load(), (whole, following))
    assert settled.landed == (Landed(range=whole, commit_id="A", snapshot_id=catalog.load().snapshot_id),)
    assert settled.waiting == (following,)
    with pytest.raises(TableError, match="only some files of a range") as caught:
        settle(catalog.load(), (replace(whole, files=(first, span(0, 0, 10).files[0])),))
    assert caught.value.context["offsets"] == "[0, 10)"
