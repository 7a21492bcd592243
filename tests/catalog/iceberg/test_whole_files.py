"""Metadata files are uploaded whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io import InputFile, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFileIO

from catalog.iceberg.append import Attempt, prepare
from catalog.iceberg.whole_files import WholeFiles
from catalog.iceberg.written_lists import WrittenLists
from catalog.model import new_id
from tests.support.catalog.memory import MemoryCatalog, span


class Counting(PyArrowFileIO):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def new_input(self, location: str) -> Any:
        return _Read(super().new_input(location), self.asked)

    def new_output(self, location: str) -> Any:
        return _Counted(super().new_output(location), self.asked)


class _Read(InputFile):
    def __init__(self, file: InputFile, asked: list[str]) -> None:
        super().__init__(file.location)
        self._file, self._asked = file, asked

    def __len__(self) -> int:
        self._asked.append("size")
        return len(self._file)

    def exists(self) -> bool:
        return self._file.exists()

    def open(self, seekable: bool = True) -> Any:
        self._asked.append("read")
        return self._file.open(seekable)


class _Counted(OutputFile):
    def __init__(self, file: OutputFile, asked: list[str]) -> None:
        super().__init__(file.location)
        self._file, self._asked = file, asked

    def __len__(self) -> int:
        self._asked.append("length")
        return len(self._file)

    def exists(self) -> bool:
        return self._file.exists()

    def to_input_file(self) -> Any:
        return self._file.to_input_file()

    def create(self, overwrite: bool = False) -> OutputStream:
        self._asked.append("create")
        return self._file.create(overwrite=overwrite)


def test_a_file_is_written_when_it_is_closed(tmp_path: Path) -> None:
    path, store = tmp_path / "m.avro", Counting()
    file = WholeFiles(store, WrittenLists(0)).new_output(str(path))
    stream = file.create(overwrite=True)
    for piece in (b"one", b"", b"two"):
        stream.write(piece)
    assert (stream.tell(), store.asked, path.exists()) == (6, [], False)
    stream.close()
    stream.close()
    assert (path.read_bytes(), len(file), store.asked) == (b"onetwo", 6, ["create"])
    assert len(WholeFiles(store, WrittenLists(0)).new_output(str(path))) == 6
    assert store.asked == ["create", "length"]


def test_one_that_nobody_closes_is_never_written(tmp_path: Path) -> None:
    path = tmp_path / "m.avro"
    stream = WholeFiles(Counting(), WrittenLists(0)).new_output(str(path)).create(overwrite=True)
    stream.write(b"half")
    del stream
    assert not path.exists()


def test_a_store_that_fails_is_told_where_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "there"
    path.mkdir()
    stream = WholeFiles(PyArrowFileIO(), WrittenLists(0)).new_output(str(path)).create(overwrite=True)
    stream.write(b"x")
    with pytest.raises(OSError, match="there"):
        stream.close()


def test_an_append_asks_the_store_for_nothing_but_two_files(tmp_path: Path) -> None:
    catalog, store = MemoryCatalog(tmp_path), Counting()
    table = catalog.load()
    table.iceberg.io = store
    attempt = prepare(table, [span(0, 0, 10)], change=None, commit_id=new_id())
    assert store.asked == ["create", "create"]
    catalog.apply(attempt)
    (manifest,) = catalog.load().iceberg.current_snapshot().manifests(store)  # type: ignore[union-attr]
    assert manifest.manifest_length == Path(manifest.manifest_path.removeprefix("file://")).stat().st_size
    assert len(manifest.fetch_manifest_entry(store)) == 1


def test_next_append_checks_only_the_last_list(tmp_path: Path) -> None:
    catalog, store = MemoryCatalog(tmp_path), Counting()
    for start in (0, 10, 20):
        append(catalog, store, start)
    assert store.asked == ["create", "create", "size", "create", "create", "size", "create", "create"]
    assert brought(catalog) == 3


def test_an_append_after_another_writer_reads_that_ones_list(tmp_path: Path) -> None:
    catalog, store = MemoryCatalog(tmp_path), Counting()
    append(catalog, store, 0)
    lists, catalog.lists = catalog.lists, WrittenLists()
    append(catalog, Counting(), 10)
    catalog.lists = lists
    append(catalog, store, 20)
    assert store.asked == ["create", "create", "read", "create", "create"]
    assert brought(catalog) == 3


def test_an_attempt_on_the_same_snapshot_reads_the_list_again(tmp_path: Path) -> None:
    catalog, store = MemoryCatalog(tmp_path), Counting()
    append(catalog, store, 0)
    prepared(catalog, store, 10)
    append(catalog, store, 10)
    assert store.asked == ["create", "create", "size", "create", "create", "read", "create", "create"]
    assert brought(catalog) == 2


def test_lists_are_kept_up_to_so_many_bytes() -> None:
    lists = WrittenLists(10)
    for at in range(5):
        lists.put(str(at), bytes([at]) * 4)
    lists.put("4", b"twice")
    lists.put("long", b"more than ten")
    assert [lists.take(name) for name in ("0", "3", "long", "4")] == [None, bytes([3]) * 4, None, b"twice"]
    lists.put("a", b"12345")
    lists.put("b", b"12345")
    assert [lists.take(name) for name in ("a", "a", "b")] == [b"12345", None, b"12345"]


def test_only_lists_are_kept(tmp_path: Path) -> None:
    lists = WrittenLists()
    for name in ("snap-1-0-a.avro", "a-m0.avro"):
        with WholeFiles(PyArrowFileIO(), lists).new_output(str(tmp_path / name)).create() as stream:
            stream.write(b"x")
    assert [lists.take(str(tmp_path / name)) for name in ("snap-1-0-a.avro", "a-m0.avro")] == [b"x", None]


def test_a_list_that_the_store_did_not_take_is_not_kept(tmp_path: Path) -> None:
    lists, path = WrittenLists(), tmp_path / "snap-1-0-a.avro"
    path.mkdir()
    stream = WholeFiles(PyArrowFileIO(), lists).new_output(str(path)).create(overwrite=True)
    stream.write(b"x")
    with pytest.raises(OSError, match="snap-1"):
        stream.close()
    assert lists.take(str(path)) is None


def prepared(catalog: MemoryCatalog, store: Counting, start: int) -> Attempt:
    table = catalog.load()
    table.iceberg.io = store
    return prepare(table, [span(0, start, start + 10)], change=None, commit_id=new_id())


def append(catalog: MemoryCatalog, store: Counting, start: int) -> None:
    catalog.apply(prepared(catalog, store, start))


def brought(catalog: MemoryCatalog) -> int:
    return len(catalog.load().iceberg.current_snapshot().manifests(PyArrowFileIO()))  # type: ignore[union-attr]
