"""How a table stands: whole, set back, or without rows that others removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from pyiceberg.table.update import SetSnapshotRefUpdate, update_table_metadata

from archiver.commit.table_check import TableCheck, check_archive
from catalog.errors import RolledBack, RowsRemoved
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import PartitionOffset, new_id
from catalog.ranges.holes import ExpectedFile, ExpectedRange
from tests.support.archive.lake import TOPIC, Lake


@dataclass
class Committed:
    """A registry that knows which ranges were committed, and nothing of earlier looks."""

    ranges: list[ExpectedRange] = field(default_factory=list)

    @property
    def files(self) -> Any:
        return self

    @property
    def rows(self) -> Any:
        return self

    def committed_ends(self, topic: Any) -> Mapping[int, PartitionOffset]:
        return {one.partition: PartitionOffset(next_offset=one.end_offset) for one in self.ranges}

    def expected_ranges(self, topic: Any) -> tuple[ExpectedRange, ...]:
        return tuple(self.ranges)

    def checked(self, topic: Any) -> None:
        return None

    def note_checked(self, topic: Any, checked: Any) -> None:
        pass


@dataclass
class Archived:
    """A table with real files, and the registry that knows of them; ten offsets a commit."""

    lake: Lake
    archive: Any
    registry: Committed = field(default_factory=Committed)

    def append(self) -> None:
        start = 10 * len(self.registry.ranges)
        rows = self.archive.batch([self.archive.row(offset=start + each) for each in range(10)])
        path = self.lake.add(self.archive.rows, rows, start, start + 10)
        assert path is not None
        self.registry.ranges.append(
            ExpectedRange(
                id=new_id(),
                partition=0,
                start_offset=start,
                end_offset=start + 10,
                files=(ExpectedFile(path=path, rows=10),),
                rows=10,
                file_rows=10,
                digest=None,
            )
        )

    def load(self) -> ArchiveTable:
        return ArchiveTable(topic=TOPIC, iceberg=self.lake.load(TOPIC.topic))

    def look(self, load: Callable[[], ArchiveTable | None] | None = None, **options: Any) -> TableCheck:
        return check_archive(TOPIC, cast("Any", self.registry), load or self.load, **options)


@pytest.fixture
def archived(lake: Lake, archive: Any) -> Archived:
    """Two commits."""
    made = Archived(lake, archive)
    made.append()
    made.append()
    return made


def spans(found: TableCheck) -> list[tuple[int, int, int]]:
    return [(each.start_offset, each.end_offset, each.rows) for each in found.holes]


def test_without_a_table_there_is_nothing_to_lack(archived: Archived) -> None:
    assert archived.look(lambda: None) == TableCheck()


def test_a_table_with_all_that_was_committed_is_whole(archived: Archived) -> None:
    found = archived.look()
    assert (found.holes, found.error) == ((), None)
    assert found.table is not None


def test_files_that_others_put_together_leave_nothing_missing(archived: Archived) -> None:
    archived.lake.rewrite()
    found = archived.look()
    assert (found.holes, found.error) == ((), None)


def test_a_table_known_from_before_the_last_commit_is_loaded_again(archived: Archived) -> None:
    known = archived.load()
    archived.append()
    found = archived.look(known=known)
    assert found.error is None
    assert found.table is not None
    assert found.table.offsets[0].next_offset == 30


def test_a_main_branch_set_to_an_earlier_snapshot_is_told_as_set_back(archived: Archived) -> None:
    first = archived.lake.metadata.snapshots[0].snapshot_id
    back = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=first)
    archived.lake.metadata = update_table_metadata(archived.lake.metadata, (back,), enforce_validation=True)
    found = archived.look()
    assert isinstance(found.error, RolledBack)
    assert spans(found) == [(10, 20, 10)]


def test_metadata_of_before_the_last_commit_is_told_as_set_back(archived: Archived) -> None:
    """Its history is in order: only the registry knows that there was more."""
    before = archived.lake.metadata
    archived.append()
    archived.lake.metadata = before
    found = archived.look()
    assert isinstance(found.error, RolledBack)
    assert found.error.context["missing"] == "partition 0 [20, 30) 10 rows"


def test_files_that_others_removed_are_told_as_such(archived: Archived) -> None:
    archived.lake.replace([])
    found = archived.look()
    assert isinstance(found.error, RowsRemoved)
    assert found.error.context["missing"] == "partition 0 [0, 20) 20 rows"


def test_rows_that_others_deleted_are_told_as_such(archived: Archived) -> None:
    archived.lake.delete_positions({archived.registry.ranges[1].files[0].path: [3, 4]})
    found = archived.look()
    assert isinstance(found.error, RowsRemoved)
    assert spans(found) == [(13, 15, 2)]
