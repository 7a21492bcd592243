"""Truncated manifest lists are detected, without false alarms."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table

from archiver.archive.table_files import ManifestReader
from archiver.errors import StorageError
from catalog.errors import MetadataDamaged
from catalog.iceberg.avro_blocks import records_of
from catalog.iceberg.manifest_lists import entries_of, manifest_list, manifests_of
from tests.support.archive.listed_table import ListedTable, data_file, position_deletes
from tests.support.catalog.avro_blocks import in_blocks, without_last_block

FILES = 5
"""Files of each manifest."""


@pytest.fixture
def listed(tmp_path: Path) -> ListedTable:
    table = ListedTable(tmp_path)
    for number in range(4):
        add(table, number)
    return table


def add(listed: ListedTable, number: int) -> None:
    listed.add([data_file(f"file:///data/{number}-{offset}", [1], offsets=(offset, offset)) for offset in range(FILES)])


def list_of(table: Table) -> Path:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return Path(snapshot.manifest_list.removeprefix("file://"))


def read(table: Table) -> list[ManifestFile]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return manifests_of(table.io, table.metadata, snapshot)


TOLD: dict[str, dict[str, int]] = {
    "the number of manifests": {"manifests_created": 1, "manifests_kept": 3},
    "the number of files": {"total_data_files": 4 * FILES},
}


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_a_list_is_whole_or_an_error_at_every_byte(listed: ListedTable, told: dict[str, int]) -> None:
    table = listed.table(**told)
    path = list_of(table)
    borders = in_blocks(path)
    whole = path.read_bytes()
    assert len(borders) == 5  # of the header and of four blocks
    for end in {*range(0, len(whole), 5), *(border + off for border in borders for off in (-17, -1, 0, 1))}:
        path.write_bytes(whole[:end])
        if end >= len(whole):
            continue
        with pytest.raises(MetadataDamaged, match=path.name):
            read(table)
    path.write_bytes(whole)
    assert len(read(table)) == 4


def test_an_error_says_where_the_blocks_end(listed: ListedTable) -> None:
    path = list_of(listed.table())
    borders = in_blocks(path)
    path.write_bytes(path.read_bytes()[: borders[2] + 9])
    with pytest.raises(MetadataDamaged) as raised:
        manifest_list(listed.io, path.as_uri())
    assert raised.value.context["place"] == borders[2]
    assert raised.value.context["bytes"] == borders[2] + 9


def test_a_plan_is_never_shorter_in_silence(listed: ListedTable) -> None:
    table = listed.table(total_data_files=4 * FILES)
    path = list_of(table)
    assert len(ManifestReader().files(table)) == 4 * FILES
    without_last_block(path)
    with pytest.raises(StorageError, match=path.name):
        ManifestReader().files(table)


def test_lost_delete_files_are_detected_beside_the_parent(tmp_path: Path) -> None:
    listed = ListedTable(tmp_path)
    add(listed, 0)
    before = listed.table(total_data_files=FILES, total_delete_files=0)
    listed.add([position_deletes("file:///deletes", [1])], deletes=True)
    table = listed.table(parent=before, total_data_files=FILES, total_delete_files=1)
    path = list_of(table)
    assert len(read(table)) == 2
    without_last_block(path)
    with pytest.raises(MetadataDamaged, match="total-delete-files"):
        read(table)


@pytest.mark.parametrize(
    "told",
    [
        {"added_data_files": 1},  # no totals
        {"total_data_files": 1},  # counted from nothing: the engine before told no totals
        {"total_data_files": 4 * FILES, "total_delete_files": 3},  # no parent agrees that these are right
        {"total_data_files": 4 * FILES + 1, "deleted_duplicate_files": 1},
        {"total_data_files": 4 * FILES + 9, "manifests_created": 4, "manifests_kept": 0},
    ],
    ids=", ".join,
)
def test_a_whole_list_of_another_engine_is_taken(listed: ListedTable, told: dict[str, int]) -> None:
    table = listed.table(**told)
    in_blocks(list_of(table))
    assert len(read(table)) == 4


def test_totals_that_were_wrong_before_say_nothing(listed: ListedTable) -> None:
    before = listed.table(total_data_files=4 * FILES + 2)
    add(listed, 4)
    assert len(read(listed.table(parent=before, total_data_files=5 * FILES + 2))) == 5
    with pytest.raises(MetadataDamaged, match="total-data-files"):
        read(listed.table(parent=before, total_data_files=5 * FILES + 3))


def test_a_parent_that_is_gone_says_nothing(listed: ListedTable) -> None:
    before = listed.table(total_data_files=4 * FILES, total_delete_files=0)
    list_of(before).unlink()
    assert read(listed.table(parent=before, total_data_files=4 * FILES, total_delete_files=1))


def test_wrong_totals_before_an_expired_parent_are_ignored(listed: ListedTable) -> None:
    """Every table with expiry has a snapshot without parent; another engine's old mistake must not stop it."""
    before = listed.table(total_data_files=4 * FILES + 1)
    table = listed.table(parent=before, total_data_files=4 * FILES + 1)
    alone = table.metadata.model_copy(update={"snapshots": table.metadata.snapshots[1:]})
    assert len(manifests_of(listed.io, alone, alone.snapshots[0])) == 4


def test_a_parent_that_tells_no_deletes_is_believed_of_data(listed: ListedTable) -> None:
    before = listed.table(total_data_files=4 * FILES)
    table = listed.table(parent=before, total_data_files=4 * FILES + 1, total_delete_files=1)
    with pytest.raises(MetadataDamaged, match="counted wrong") as raised:
        read(table)
    assert raised.value.context["total-data-files too few"] == 1
    assert "total-delete-files too few" not in raised.value.context


def test_an_empty_list_is_taken_where_there_are_no_files(tmp_path: Path) -> None:
    listed = ListedTable(tmp_path)
    assert read(listed.table(total_data_files=0)) == []
    assert read(listed.table(added_data_files=0)) == []
    with pytest.raises(MetadataDamaged, match="cut short"):
        read(listed.table(total_data_files=1))


class Short:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def open(self) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._stream.seek(offset, whence))

    def read(self, size: int) -> bytes:
        return bytes(self._stream.read(size)[:-1])


class ShortIO:
    def __init__(self, io: Any) -> None:
        self._io = io

    def new_input(self, path: str) -> Short:
        return Short(self._io.new_input(path).open())


def test_short_read_says_nothing_against_a_manifest_list(listed: ListedTable) -> None:
    table = listed.table()
    table.io = ShortIO(listed.io)  # type: ignore[assignment]
    with pytest.raises(ConnectionError):
        read(table)
    with pytest.raises(StorageError) as raised:
        ManifestReader().files(table)
    assert raised.value.retryable


def test_short_read_says_nothing_against_a_manifest(listed: ListedTable) -> None:
    with pytest.raises(ConnectionError):
        entries_of(ShortIO(listed.io), listed.manifests[0])  # type: ignore[arg-type]


def test_a_manifest_that_was_cut_short_is_told_at_every_byte(listed: ListedTable) -> None:
    manifest = listed.manifests[0]
    path = Path(manifest.manifest_path.removeprefix("file://"))
    content = path.read_bytes()
    for end in range(0, len(content), 7):
        path.write_bytes(content[:end])
        with pytest.raises(MetadataDamaged, match=path.name):
            entries_of(listed.io, manifest)
    path.write_bytes(content)
    assert len(entries_of(listed.io, manifest)) == FILES


def test_blocks_are_counted_as_other_readers_count_them(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "one", "fields": [{"name": "number", "type": "long"}]}
    for count in (0, 1, 63, 64, 5_000):
        for interval in (1, 100, 16_000):
            out = io.BytesIO()
            fastavro.writer(out, schema, ({"number": number} for number in range(count)), sync_interval=interval)
            assert records_of(out.getvalue(), "x") == count
            with pytest.raises(MetadataDamaged):
                records_of(out.getvalue() + b"\0", "x")
