"""A FileIO that is created at its first use."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from pyiceberg.io import PY_IO_IMPL, FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from catalog.iceberg.late_file_io import LateFileIO, may_be_late


def test_late_file_io_has_properties_and_creates_nothing() -> None:
    def make() -> FileIO:
        raise AssertionError

    assert LateFileIO({"s3.endpoint": "http://127.0.0.1:1"}, make).properties == {"s3.endpoint": "http://127.0.0.1:1"}


def test_files_are_written_read_and_deleted(tmp_path: Path) -> None:
    made: list[FileIO] = []

    def make() -> FileIO:
        made.append(PyArrowFileIO())
        return made[-1]

    late, path = LateFileIO({}, make), f"file://{tmp_path}/object"
    with late.new_output(path).create() as stream:
        stream.write(b"bytes")
    with late.new_input(path).open() as stream:
        assert stream.read() == b"bytes"
    late.delete(path)
    assert not (tmp_path / "object").exists()
    assert len(made) == 1


def test_threads_share_one(tmp_path: Path) -> None:
    made, together = [], Barrier(4)

    def make() -> FileIO:
        made.append(PyArrowFileIO())
        return made[-1]

    late = LateFileIO({}, make)

    def look(_: int) -> bool:
        together.wait(10)
        return late.new_input(f"file://{tmp_path}/none").exists()

    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(look, range(4)))
    assert len(made) == 1


@pytest.mark.parametrize(
    ("location", "properties", "expected"),
    [
        ("s3://lake/table", {}, True),
        ("file:///lake/table", {}, True),
        ("s3://lake/table", {PY_IO_IMPL: "acme.FileIO"}, False),
        ("abfss://lake@acme.dfs.core.windows.net/table", {}, False),
        ("gs://lake/table", {}, False),
        ("/lake/table", {}, False),
        (None, {}, False),
    ],
)
def test_only_what_cannot_fail_is_made_later(
    location: str | None, properties: dict[str, str], *, expected: bool
) -> None:
    assert may_be_late(properties, location) == expected


def test_the_client_of_the_catalog_imports_no_pyarrow() -> None:
    run = "import sys; from catalog.iceberg.table_catalog import TableCatalog; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False"]
