"""Manifests are read once, truncated ones refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io import InputFile
from pyiceberg.io.pyarrow import PyArrowFileIO

from archiver.archive.manifests import live_entries
from archiver.archive.table_files import ManifestReader
from archiver.errors import StorageError
from archiver.upkeep.orphans.references import References
from tests.support.archive.listed_table import ListedTable, data_file


class CountingIO(PyArrowFileIO):
    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def new_input(self, location: str) -> InputFile:
        self.read.append(location.rpartition("/")[2])
        return super().new_input(location)


@pytest.fixture
def listed(tmp_path: Path) -> ListedTable:
    table = ListedTable(tmp_path)
    for number in range(3):
        table.add([data_file(f"file:///data/{number}-{value}", [1], offsets=(value, value)) for value in range(50)])
    return table


def read_by(reader: ManifestReader, listed: ListedTable) -> list[str]:
    io = CountingIO()
    table = listed.table()
    table.io = io
    reader.files(table)
    return [name for name in io.read if name.startswith("manifest-")]


def test_a_refresh_reads_what_is_new(listed: ListedTable) -> None:
    reader = ManifestReader()
    assert len(read_by(reader, listed)) == 3
    assert read_by(reader, listed) == []
    fresh = listed.add([data_file("file:///data/new", [1])])
    assert read_by(reader, listed) == [fresh.name]
    gone = listed.manifests.pop(0)
    assert read_by(reader, listed) == []
    listed.manifests.append(gone)
    assert read_by(reader, listed) == [gone.manifest_path.rpartition("/")[2]]


def test_the_same_snapshot_is_the_same_plan(listed: ListedTable) -> None:
    reader, table = ManifestReader(), listed.table()
    assert reader.files(table) is reader.files(table)


def test_a_file_takes_some_two_hundred_bytes(tmp_path: Path) -> None:
    listed = ListedTable(tmp_path)
    long = (
        "s3://lake/warehouse/kafka/orders/data/ingest_day=2026-01-31/orders-7-1000-01HXXXXXXXXXXXXXXXXXXXXXXX.parquet"
    )
    listed.add([data_file(long + str(value), [1], partitions=(0, 0), offsets=(0, 9)) for value in range(1_000)])
    files = ManifestReader().files(listed.table())
    assert files.columns.get_total_buffer_size() < 300 * len(files)


def cut(manifest: Path, place: str) -> None:
    """Between entries, it reads as a manifest of fewer files."""
    whole = manifest.read_bytes()
    sync = whole[-16:]
    middle = whole.index(sync, len(whole) // 2) + len(sync)
    manifest.write_bytes(whole[: middle + (place == "in an entry") * 20])


@pytest.fixture(params=["between entries", "in an entry"])
def cut_short(listed: ListedTable, request: pytest.FixtureRequest) -> Path:
    manifest = listed.add([data_file(f"file:///data/cut-{value}", [1]) for value in range(50)])
    cut(manifest, request.param)
    return manifest


def test_a_manifest_that_was_cut_short_is_an_error(listed: ListedTable, cut_short: Path) -> None:
    with pytest.raises(StorageError, match=cut_short.name):
        ManifestReader().files(listed.table())


def test_truncated_manifest_list_is_an_error_at_any_cut(listed: ListedTable) -> None:
    table = listed.table()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    path = Path(snapshot.manifest_list.removeprefix("file://"))
    whole = path.read_bytes()
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        with pytest.raises(StorageError, match=path.name):
            ManifestReader().files(table)
    path.write_bytes(whole)
    assert len(ManifestReader().files(table)) == 150


def test_a_damaged_manifest_is_an_error_of_its_table_alone(tmp_path: Path) -> None:
    """Any other error would end the run of all topics."""
    listed = ListedTable(tmp_path)
    manifest = listed.add([data_file("file:///data/1", [1])])
    whole, events, unknown = manifest.read_bytes(), 0, list[str]()
    for position in range(0, len(whole), 31):
        manifest.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        try:
            list(live_entries(listed.io, listed.manifests[0]))
        except StorageError:
            events += 1
        except Exception as error:  # noqa: BLE001 - none may come
            unknown.append(repr(error))
    assert events
    assert not unknown


def test_what_a_manifest_that_was_cut_short_refers_to_is_unknown(listed: ListedTable, cut_short: Path) -> None:
    """Otherwise the files of the manifest would be taken for orphans."""
    with pytest.raises(StorageError, match=cut_short.name):
        References().look(lambda: Loaded(listed.table()), ())


class Loaded:
    def __init__(self, iceberg: Any) -> None:
        self.iceberg = iceberg
        self.io = iceberg.io
        self.snapshot_id = iceberg.metadata.current_snapshot_id
