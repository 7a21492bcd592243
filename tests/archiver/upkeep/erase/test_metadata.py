"""Which entries an erasure takes, and what stays doomed until its object is deleted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archiver.errors import StorageDenied
from archiver.records.where import Where
from archiver.storage.metadata_folder import MetadataFolder
from archiver.storage.objects import ObjectStore
from archiver.upkeep.erase.metadata import NamedRecords, doom, entries_of, erase_metadata
from archiver.upkeep.removal.conditions import AtOffsets, Matching
from catalog.record_metadata import MetadataEntry, OfOffsets
from tests.support.archive.metadata_entries import entry_of

JANE, JOHN = entry_of(b"jane", "case", "1", seconds=1), entry_of(b"john", "case", "2", seconds=2)
LOW, HIGH = entry_of(OfOffsets(0, 0, 5), "case", "3", seconds=3), entry_of(OfOffsets(0, 5, 9), "case", None, seconds=4)
ENTRIES = (JANE, JOHN, LOW, HIGH)


@pytest.mark.parametrize(
    ("where", "taken"),
    [
        ("key = 'jane'", [JANE]),
        ("key starts with 'j'", [JANE, JOHN]),
        ("key = 'jane' and offset < 5", []),
        ("key = 'jane' or offset < 5", [JANE]),
        ("not key = 'jane'", []),
    ],
)
def test_a_key_that_the_condition_names_is_taken(where: str, taken: list[MetadataEntry]) -> None:
    named = NamedRecords.of(Matching(Where.parse(where), {0: 9}), (), ())
    assert list(named.among(ENTRIES)) == taken


def test_keys_and_offsets_of_records_are_taken() -> None:
    condition = Matching(Where.parse("val.name = 'x'"), {0: 9})
    assert NamedRecords.of(condition, [(0, 4, 5), (1, 5, 6)], [b"john"]).among(ENTRIES) == (JOHN, LOW)
    assert NamedRecords.of(AtOffsets({0: ((8, 9),)}), (), ()).among(ENTRIES) == (HIGH,)


class RowsInMemory:
    def __init__(self, *entries: MetadataEntry) -> None:
        self.rows = {entry.id: entry for entry in entries}
        self.gone: set[str] = set()
        self.folders: tuple[str, ...] = ()

    def load(self, _topic: object) -> tuple[MetadataEntry, ...]:
        return tuple(entry for entry in self.rows.values() if entry.id not in self.gone)

    def ids(self, _topic: object) -> frozenset[str]:
        return frozenset(self.rows)

    def doom(self, _topic: object, entries: Any, _folder: str) -> None:
        self.rows |= {entry.id: entry for entry in entries}
        self.gone |= {entry.id for entry in entries}

    def doomed(self, _topic: object) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(sorted(self.gone), self.folders)

    def forget(self, _topic: object, ids: Any) -> None:
        for entry_id in ids:
            del self.rows[entry_id]
            self.gone.discard(entry_id)


class Denying(MetadataFolder):
    """A folder that deletes nothing."""

    def delete(self, entry_id: str) -> None:
        raise StorageDenied("kept by a policy", file=f"{self.path}/{entry_id}")


def work_of(folder: MetadataFolder | None, rows: RowsInMemory, erased: dict[int, list[tuple[int, int]]]) -> Any:
    erasures = SimpleNamespace(offsets=lambda _topic: erased)
    return SimpleNamespace(
        topic="orders",
        config=SimpleNamespace(catalog={}, archive=SimpleNamespace(journal_properties={})),
        journal=SimpleNamespace(metadata=folder),
        registry=SimpleNamespace(metadata=rows, erasures=erasures),
    )


def test_entries_of_a_restored_database_come_from_the_journal(tmp_path: Path) -> None:
    folder = MetadataFolder(path=tmp_path.as_uri(), objects=ObjectStore())
    folder.write(ENTRIES)
    rows = RowsInMemory(JOHN)
    work = work_of(folder, rows, {0: [(4, 5)]})
    assert {entry.id for entry in entries_of(work)} == {entry.id for entry in ENTRIES}
    doom(work, [JANE])
    assert erase_metadata(work, {0: ((8, 9),)}) == {}
    assert folder.ids() == {JOHN.id}
    assert rows.rows == {JOHN.id: JOHN}


def test_a_denied_deletion_keeps_the_entry_doomed(tmp_path: Path) -> None:
    denying = Denying(path=tmp_path.as_uri(), objects=ObjectStore())
    denying.write(ENTRIES)
    rows = RowsInMemory(*ENTRIES)
    failures = erase_metadata(work_of(denying, rows, {0: [(0, 1)]}), {})
    assert [type(error) for error in failures.values()] == [StorageDenied]
    assert list(rows.doomed("orders")) == [LOW.id]
    folder = MetadataFolder(path=denying.path, objects=ObjectStore())
    assert erase_metadata(work_of(folder, rows, {}), {}) == {}
    assert (LOW.id in folder.ids(), LOW.id in rows.rows) == (False, False)


def test_former_folders_are_erased(tmp_path: Path) -> None:
    """Also without a journal now. A failure keeps the entry doomed."""
    former = MetadataFolder(path=(tmp_path / "former").as_uri(), objects=ObjectStore())
    former.write([LOW])
    rows = RowsInMemory(LOW)
    denied = tmp_path / "denied"
    (denied / f"{LOW.id}.json").mkdir(parents=True)  # deletions of files fail here
    rows.folders = (former.path, denied.as_uri())
    work = work_of(None, rows, {0: [(0, 1)]})
    assert list(erase_metadata(work, {})) == [f"{denied.as_uri()}/{LOW.id}"]
    assert (former.ids(), rows.gone) == (frozenset(), {LOW.id})
    rows.folders = (former.path,)
    assert erase_metadata(work, {}) == {}
    assert rows.rows == {}
