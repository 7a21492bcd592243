"""Deletion vectors, also with flipped bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.manifest import DataFile, FileFormat

from archiver.archive.deletes import DeleteFiles
from archiver.archive.deletion_vectors import DeletionVector
from archiver.archive.table_files import ManifestReader
from archiver.errors import BadSegment, StorageUnavailable, UnknownFormat
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from tests.support.archive.archived_rows import replayed
from tests.support.archive.lake import Lake
from tests.support.archive.puffin_file import framed, vector, vector_entry, write_vectors

OBJECTS = ObjectStore.of({}, attempts=1)
ROWS = [3, 5, 900, 5000, 70_000, *range(200_000, 200_100), (7 << 32) + 1]


@pytest.fixture
def entry(tmp_path: Path) -> DataFile:
    path = tmp_path / "v.puffin"
    _, position, _ = write_vectors(path, {"file:///a": [1, 2], "file:///b": ROWS, "file:///c": [4]})
    return vector_entry(path, position, 0)


def local(delete: DataFile) -> Path:
    return Path(delete.file_path.removeprefix("file://"))


def positions(delete: DataFile) -> list[int]:
    return DeletionVector.of_entry(delete).positions(OBJECTS).tolist()


def test_a_vector_is_read_from_its_place(entry: DataFile):
    assert positions(entry) == ROWS


@given(st.sets(st.integers(0, 1 << 20) | st.integers(1 << 32, 1 << 34), max_size=60), st.integers(0, 70_000))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_positions_are_read(tmp_path: Path, some: set[int], run: int):
    path = tmp_path / "any.puffin"
    rows = sorted(some | set(range(3 << 20, (3 << 20) + run)))
    (position,) = write_vectors(path, {"file:///a": rows})
    assert positions(vector_entry(path, position, 0)) == rows


def test_every_flipped_bit_is_told(entry: DataFile):
    result, path = DeletionVector.of_entry(entry), local(entry)
    sound = path.read_bytes()
    for bit in range(8 * result.offset, 8 * (result.offset + result.size)):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(BadSegment, match="aren't those that were written") as raised:
            result.positions(OBJECTS)
    assert raised.value.context["file"] == entry.file_path
    assert raised.value.context["data_file"] == "file:///b"
    path.write_bytes(sound)
    assert positions(entry) == ROWS


def test_bytes_of_another_kind_are_told(tmp_path: Path):
    path, blob = tmp_path / "v.puffin", framed(vector([1])[8:-4], magic=b"\xd1\xd3\x39\x65")
    path.write_bytes(blob)
    result = DeletionVector(path=path.as_uri(), data_file="file:///a", offset=0, size=len(blob), rows=1)
    with pytest.raises(BadSegment, match="aren't those that were written"):
        result.positions(OBJECTS)


@pytest.mark.parametrize("size", [0, 30, -1])
def test_a_file_that_was_cut_short_is_told(entry: DataFile, size: int):
    result = DeletionVector.of_entry(entry)
    with local(entry).open("r+b") as file:
        file.truncate(size if size >= 0 else result.offset + result.size - 1)
    with pytest.raises(BadSegment, match="cut short"):
        result.positions(OBJECTS)


def test_an_answer_that_is_cut_short_is_no_damage(entry: DataFile):
    class ShortStore(ObjectStore):
        def file_io(self, _: str) -> Any:
            return _Short(local(entry))

    with pytest.raises(StorageUnavailable, match="doesn't answer"):
        DeletionVector.of_entry(entry).positions(ShortStore.of({}, attempts=1))


class _Short:
    def __init__(self, path: Path) -> None:
        self._path = path

    def new_input(self, _: str) -> _Short:
        return self

    def open(self) -> _Short:
        self._file = self._path.open("rb")
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def seek(self, *place: int) -> int:
        return self._file.seek(*place)

    def read(self, size: int) -> bytes:
        return self._file.read(size - 1)


@pytest.mark.parametrize("rows", [len(ROWS) - 1, len(ROWS) + 1, 0])
def test_vector_with_another_row_count_is_refused(entry: DataFile, rows: int):
    with pytest.raises(BadSegment, match=f"other rows than its manifest says.*found={len(ROWS)}"):
        replace(DeletionVector.of_entry(entry), rows=rows).positions(OBJECTS)


@pytest.mark.parametrize(
    "bitmap", [bytes(7) + b"\xff", b"\xff" * 8, (1).to_bytes(8, "little") + b"\xff" * 40, b"\1" * 8]
)
def test_bytes_that_are_no_bitmap_are_told(tmp_path: Path, bitmap: bytes):
    path, blob = tmp_path / "v.puffin", framed(bitmap)
    path.write_bytes(blob)
    vector = DeletionVector(path=path.as_uri(), data_file="file:///a", offset=0, size=len(blob), rows=1)
    with pytest.raises(BadSegment, match="don't read as a bitmap"):
        vector.positions(OBJECTS)


@pytest.mark.parametrize(
    "told",
    [
        {"referenced_data_file": None},
        {"content_offset": None},
        {"content_offset": -4},
        {"content_size_in_bytes": None},
        {"content_size_in_bytes": 19},
    ],
)
def test_a_manifest_that_names_no_place_is_told(lake: Lake, filled: list[Any], told: dict[str, Any]):
    first, *_ = sorted(lake.files(), key=lambda file: file.file_path)
    path = lake.delete_by_vectors({first.file_path: [0, 2, 91]}, **told)
    with pytest.raises(BadSegment, match="doesn't say where a deletion vector lies") as raised:
        replayed(lake.archive())
    assert raised.value.context["file"] == path.as_uri()


def test_each_vector_of_a_file_deletes_rows_of_its_own_data_file(lake: Lake, filled: list[Any]):
    first, second, *_ = sorted(lake.files(), key=lambda file: file.file_path)
    path = lake.delete_by_vectors({"file:///elsewhere": [1], second.file_path: [7], first.file_path: [0, 2, 91]})
    files = ManifestReader().files(lake.load("orders"))
    deletes = DeleteFiles(OBJECTS, FORMATS)
    assert {file.path: deletes.read(file).positions.tolist() for file in files if file.has_deletes} == {
        first.file_path: [0, 2, 91],
        second.file_path: [7],
    }
    assert not {1, 3, 99} & {value["offset"] for value in replayed(lake.archive())}
    sound = path.read_bytes()
    at = sound.find(vector([0, 2, 91])) + 30
    path.write_bytes(sound[:at] + bytes((sound[at] ^ 1,)) + sound[at + 1 :])
    with pytest.raises(BadSegment, match="aren't those that were written"):
        replayed(lake.archive())


def test_position_deletes_without_checksums_are_refused(lake: Lake, filled: list[Any]):
    first, *_ = lake.files()
    lake.delete_by_vectors({first.file_path: [0]}, file_format=FileFormat.ORC)
    with pytest.raises(UnknownFormat, match=r"write\.delete\.format\.default.*format='orc', reads='parquet'"):
        replayed(lake.archive())
