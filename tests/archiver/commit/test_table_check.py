"""A table: whole, set back, or reduced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import RemoveSnapshotsUpdate, SetSnapshotRefUpdate, update_table_metadata

from archiver.commit.compare_rows import Allowance, compare_rows
from archiver.commit.table_check import TableCheck, check_archive
from archiver.commit.table_rows import TableRows
from archiver.storage.formats import FORMATS
from catalog.errors import RegistryBehind, RolledBack, RowsAltered, RowsRemoved
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import new_id
from catalog.ranges.holes import ExpectedFile, ExpectedRange
from tests.support.archive.lake import TOPIC, Lake
from tests.support.archive.noted import Noted


@dataclass
class Archived:
    lake: Lake
    archive: Any
    registry: Noted = field(default_factory=Noted)

    def append(self) -> None:
        start = 10 * len(self.registry.ranges)
        rows = self.archive.batch([self.archive.row(offset=start + number) for number in range(10)])
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
    made = Archived(lake, archive, Noted(mapping=archive.rows))
    made.append()
    made.append()
    return made


def never() -> ArchiveTable | None:
    raise AssertionError("the table was loaded again")


def spans(found: TableCheck) -> list[tuple[int, int, int]]:
    return [(hole.start_offset, hole.end_offset, hole.rows) for hole in found.holes]


def test_without_a_table_there_is_nothing_to_lack(archived: Archived) -> None:
    assert archived.look(lambda: None) == TableCheck()


def test_a_table_with_all_that_was_committed_is_whole(archived: Archived) -> None:
    look = archived.look()
    assert (look.holes, look.error) == ((), None)
    assert look.table is not None


def test_files_that_others_put_together_leave_nothing_missing(archived: Archived) -> None:
    archived.lake.rewrite()
    look = archived.look()
    assert (look.holes, look.error) == ((), None)


def test_adjacent_altered_rows_share_one_statement(archived: Archived) -> None:
    live = TableRows(archived.load(), FORMATS)
    archived.registry.ranges = [
        replace(range_, digest=live.digests([range_])[0]) for range_ in archived.registry.ranges
    ]
    archived.lake.rewrite(lambda table: pa.Table.from_pylist([*map(spoilt, table.to_pylist())], table.schema))
    archived.registry.mapping = archived.archive.rows
    before = archived.look()
    assert (before.error, before.altered, before.uncompared_rows) == (None, (), 20)
    compare_rows(TOPIC, cast("Any", archived.registry), archived.load, Allowance())
    look = archived.look()
    assert isinstance(look.error, RowsAltered)
    assert "CREATE TAG" in look.error.message.partition("DELETE")[0]
    assert look.error.message.count("DELETE FROM kafka.orders WHERE") == 1
    assert look.error.message.index("CREATE TAG") < look.error.message.index("DELETE")
    assert "kafka.partition = 0 AND kafka.offset >= 0 AND kafka.offset < 20" in look.error.message
    assert look.error.context["altered"] == "partition 0 [0, 20) 20 rows"
    assert look.error.context["by"] == [
        f"snapshot {archived.load().snapshot_id}: overwrite by an engine that it doesn't name"
    ]


def test_altered_rows_stay_reported_after_snapshot_expiry(archived: Archived) -> None:
    live = TableRows(archived.load(), FORMATS)
    archived.registry.ranges = [
        replace(range_, digest=live.digests([range_])[0]) for range_ in archived.registry.ranges
    ]
    archived.lake.rewrite(lambda table: pa.Table.from_pylist([*map(spoilt, table.to_pylist())], table.schema))
    update = archived.load().snapshot_id
    archived.look()
    compare_rows(TOPIC, cast("Any", archived.registry), archived.load, Allowance())
    assert isinstance(archived.look().error, RowsAltered)
    archived.append()
    expire = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": [update]})
    archived.lake.metadata = update_table_metadata(archived.lake.metadata, (expire,), enforce_validation=True)
    archived.registry.is_forgotten = True
    assert isinstance(archived.look().error, RowsAltered)


def spoilt(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"val": row["val"] | {"__raw__": b"other"}}


def test_table_known_from_before_last_commit_is_reloaded(archived: Archived) -> None:
    loaded = archived.load()
    archived.append()
    look = archived.look(known=loaded)
    assert look.error is None
    assert look.table is not None
    assert look.table.offsets[0].next_offset == 30


def test_main_branch_at_earlier_snapshot_is_set_back(archived: Archived) -> None:
    first = archived.lake.metadata.snapshots[0].snapshot_id
    back = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=first)
    archived.lake.metadata = update_table_metadata(archived.lake.metadata, (back,), enforce_validation=True)
    look = archived.look()
    assert isinstance(look.error, RolledBack)
    assert spans(look) == [(10, 20, 10)]


def test_metadata_of_before_the_last_commit_is_told_as_set_back(archived: Archived) -> None:
    """Its history is in order: only the registry knows about later commits."""
    before = archived.lake.metadata
    archived.append()
    archived.lake.metadata = before
    look = archived.look()
    assert isinstance(look.error, RolledBack)
    assert look.error.context["missing"] == "partition 0 [20, 30) 10 rows"


def test_files_that_others_removed_are_told_as_such(archived: Archived) -> None:
    archived.lake.replace([])
    look = archived.look()
    assert isinstance(look.error, RowsRemoved)
    assert look.error.context["missing"] == "partition 0 [0, 20) 20 rows"


def test_rows_erased_since_a_backup_are_not_removed_by_others(archived: Archived) -> None:
    before, erased = sorted((new_id(), new_id()))
    archived.lake.replace([])
    archived.lake.sign(commit_id=erased, rewrite="erase")
    archived.registry.newest = before
    error = archived.look().error
    assert isinstance(error, RegistryBehind)
    assert (error.context["rewritten_by"], error.context["missing"]) == (["erase"], "partition 0 [0, 20) 20 rows")
    for newest in (erased, None):
        archived.registry.newest = newest
        assert isinstance(archived.look().error, RowsRemoved)


def test_rows_that_others_deleted_are_told_as_such(archived: Archived) -> None:
    archived.lake.delete_positions({archived.registry.ranges[1].files[0].path: [3, 4]})
    look = archived.look()
    assert isinstance(look.error, RowsRemoved)
    assert spans(look) == [(13, 15, 2)]


@pytest.mark.parametrize("is_checked_before", [True, False])
def test_deletes_in_an_append_snapshot_are_reported(archived: Archived, *, is_checked_before: bool) -> None:
    if is_checked_before:
        assert archived.look().error is None
    offset = archived.lake.metadata.schema().find_field("kafka.offset").field_id
    schema = pa.schema([pa.field("offset", pa.int64(), metadata={"PARQUET:field_id": str(offset)})])
    archived.lake.delete_equal(pa.table({"offset": [3, 12]}, schema=schema), [offset])
    snapshot = archived.lake.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation is Operation.APPEND
    assert not any("delete" in name for name in snapshot.summary.additional_properties if name.startswith("added"))
    look = archived.look()
    assert isinstance(look.error, RowsRemoved)
    assert spans(look) == [(3, 4, 1), (12, 13, 1)]
    (engine,) = look.error.context["by"]
    assert "append (it removes rows)" in engine


def test_an_append_that_leaves_files_out_is_reported(archived: Archived) -> None:
    assert archived.look().error is None
    archived.lake.replace([], operation=Operation.APPEND)
    assert spans(archived.look()) == [(0, 10, 10), (10, 20, 10)]


def test_new_rows_of_an_empty_table_need_no_search(lake: Lake, archive: Any) -> None:
    made = Archived(lake, archive, Noted(mapping=archive.rows))
    made.look()
    assert made.registry.notes == 1
    made.append()
    made.append()
    look = made.look(never, known=made.load())
    assert (look.holes, look.error) == ((), None)


def test_empty_table_result_is_renewed_before_expiry(lake: Lake, archive: Any) -> None:
    made = Archived(lake, archive, Noted(mapping=archive.rows))
    made.look()
    made.append()
    made.look()
    first = made.load().snapshot_id
    assert first is not None
    made.append()
    expire = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": [first]})
    made.lake.metadata = update_table_metadata(made.lake.metadata, (expire,), enforce_validation=True)
    look = made.look()
    assert (look.holes, look.error, look.unseen_before) == ((), None, None)


def test_rows_removed_from_a_once_empty_table_are_reported(lake: Lake, archive: Any) -> None:
    made = Archived(lake, archive, Noted(mapping=archive.rows))
    made.look()
    made.append()
    made.lake.replace([])
    assert spans(made.look()) == [(0, 10, 10)]
