"""Metadata files reach the store in one piece, and only whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io import OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFileIO

from catalog.iceberg.append import prepare
from catalog.iceberg.whole_files import WholeFiles
from catalog.model import new_id
from tests.support.catalog.memory import MemoryCatalog, span


class Counting(PyArrowFileIO):
    """Counts what its files are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def new_output(self, location: str) -> Any:
        return _Counted(super().new_output(location), self.asked)


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
    place, store = tmp_path / "m.avro", Counting()
    file = WholeFiles(store).new_output(str(place))
    stream = file.create(overwrite=True)
    for piece in (b"one", b"", b"two"):
        stream.write(piece)
    assert (stream.tell(), store.asked, place.exists()) == (6, [], False)
    stream.close()
    stream.close()
    assert (place.read_bytes(), len(file), store.asked) == (b"onetwo", 6, ["create"])
    assert len(WholeFiles(store).new_output(str(place))) == 6
    assert store.asked == ["create", "length"]


def test_one_that_nobody_closes_is_never_written(tmp_path: Path) -> None:
    place = tmp_path / "m.avro"
    stream = WholeFiles(Counting()).new_output(str(place)).create(overwrite=True)
    stream.write(b"half")
    del stream
    assert not place.exists()


def test_a_store_that_fails_is_told_where_the_file_is_closed(tmp_path: Path) -> None:
    place = tmp_path / "there"
    place.mkdir()
    stream = WholeFiles(PyArrowFileIO()).new_output(str(place)).create(overwrite=True)
    stream.write(b"x")
    with pytest.raises(OSError, match="there"):
        stream.close()


def test_an_append_asks_the_store_for_nothing_but_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, store = MemoryCatalog(tmp_path), Counting()
    table = catalog.load()
    table.iceberg.io = store
    attempt = prepare(table, [span(0, 0, 10)], change=None, commit_id=new_id())
    assert store.asked == ["create", "create"]
    catalog.apply(attempt)
    (manifest,) = catalog.load().iceberg.current_snapshot().manifests(store)  # type: ignore[union-attr]
    assert manifest.manifest_length == Path(manifest.manifest_path.removeprefix("file://")).stat().st_size
    assert len(manifest.fetch_manifest_entry(store)) == 1
