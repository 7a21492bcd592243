"""References of a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from pyiceberg.manifest import write_manifest_list

from archiver.errors import ObjectMissing
from archiver.upkeep.orphans.references import References
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.attempt_names import new_attempt_id
from tests.support.archive.listed_table import ListedTable, data_file

TABLE = uuid4()


@dataclass
class Loaded:
    iceberg: Any
    last_sequence_number: int = 100
    uuid: UUID = TABLE

    @property
    def io(self) -> Any:
        return self.iceberg.io

    @property
    def snapshot_id(self) -> int | None:
        snapshot_id: int | None = self.iceberg.metadata.current_snapshot_id
        return snapshot_id


def loaded(listed: ListedTable) -> ArchiveTable:
    return cast("ArchiveTable", Loaded(listed.table()))


@pytest.fixture
def listed(tmp_path: Path) -> ListedTable:
    made = ListedTable(tmp_path)
    made.add([data_file("file:///data/a", [1]), data_file("s3a://elsewhere/b", [1])])
    return made


def attempt(listed: ListedTable, *, parent: int | None, sequence: int = 100, name: UUID | None = None) -> str:
    late = ListedTable(listed.folder)
    manifest = late.add([data_file("file:///data/late", [1])])
    path = listed.folder / (f"snap-{manifest.stem}.avro" if name is None else f"snap-1-0-{name}.avro")
    with write_manifest_list(2, listed.io.new_output(path.as_uri()), 2, parent, sequence, "deflate") as writer:
        writer.add_manifests(late.manifests)
    return path.as_uri()


def test_files_manifests_and_lists_are_known_by_name(listed: ListedTable) -> None:
    references, table = References(), loaded(listed)
    assert references.look(lambda: table, ()) is table
    snapshot_list = table.iceberg.metadata.snapshots[0].manifest_list
    names = ["a", "b", *(path.rpartition("/")[2] for path in (snapshot_list, listed.manifests[0].manifest_path))]
    assert [name for name in names if name not in references] == []
    assert "file:///data/a" not in references


def test_what_was_once_referred_to_stays_so(listed: ListedTable, tmp_path: Path) -> None:
    references = References()
    references.look(lambda: loaded(listed), ())
    later = ListedTable(tmp_path)
    later.add([data_file("file:///data/c", [1])])
    references.look(lambda: loaded(later), ())
    assert "a" in references
    assert "c" in references


@pytest.mark.parametrize(("parent", "lands"), [(1, True), (7, False), (None, False)])
def test_a_commit_may_land_on_the_snapshot_the_table_still_has(
    listed: ListedTable, parent: int | None, lands: bool
) -> None:
    references = References()
    references.look(lambda: loaded(listed), (attempt(listed, parent=parent),))
    assert ("late" in references) is lands


def test_a_list_that_went_is_of_a_commit_that_cannot_land(listed: ListedTable) -> None:
    references = References()
    references.look(lambda: loaded(listed), ((listed.folder / "snap-gone.avro").as_uri(),))
    assert "a" in references
    assert "snap-gone.avro" not in references


def test_a_table_that_moved_on_is_loaded_again(listed: ListedTable) -> None:
    stale, fresh = loaded(listed), loaded(listed)
    Path(stale.iceberg.metadata.snapshots[0].manifest_list.removeprefix("file://")).unlink()
    tables = iter([stale, fresh])
    references = References()
    assert references.look(lambda: next(tables), ()) is fresh
    assert "a" in references


def test_a_list_that_stays_away_is_an_error(listed: ListedTable) -> None:
    table = loaded(listed)
    Path(table.iceberg.metadata.snapshots[0].manifest_list.removeprefix("file://")).unlink()
    with pytest.raises(ObjectMissing):
        References().look(lambda: table, ())


@pytest.mark.parametrize(("sequence", "stays"), [(99, False), (100, False), (101, True)])
def test_a_commit_beyond_the_loaded_state_may_have_landed(listed: ListedTable, sequence: int, stays: bool) -> None:
    """The loaded table was cached. Once it is past the number, an attempt that it lacks is an orphan."""
    references = References()
    references.look(lambda: loaded(listed), (attempt(listed, parent=7, sequence=sequence),))
    assert ("late" in references) is stays


@pytest.mark.parametrize(
    ("name", "stays"), [(new_attempt_id(TABLE), True), (new_attempt_id(uuid4()), False), (uuid4(), True)]
)
def test_an_erasure_passes_over_lists_of_former_tables(listed: ListedTable, name: UUID, *, stays: bool) -> None:
    references, lists = References(is_of_one_table=True), (attempt(listed, parent=1, sequence=101, name=name),)
    references.look(lambda: loaded(listed), lists)
    everything = References()
    everything.look(lambda: loaded(listed), lists)
    assert "late" in everything  # that table may come back
    assert ("late" in references) is stays
