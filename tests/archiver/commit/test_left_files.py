"""A rebuild restores replaced files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from archiver.commit.left_files import files_in_store
from archiver.errors import StorageError
from archiver.storage.objects import ListedObject, ObjectStore
from catalog.model import new_id
from catalog.ranges.replaced_files import ReplacedFile
from catalog.ranges.stored_ranges import StoredRange
from tests.support.catalog.memory import MemoryCatalog, span


def test_files_that_the_store_has_are_restored(tmp_path: Path) -> None:
    table = MemoryCatalog(tmp_path).load()
    folder = Path(table.data_location.removeprefix("file://")) / "day=2026-01-01"
    folder.mkdir(parents=True)
    present, gone, moved = (f"orders-{new_id().lower()}.parquet" for _ in range(3))
    below = f"{table.data_location}/day=2026-01-01"
    files = [replaced(f"{below}/{present}"), replaced(f"{below}/{gone}"), replaced(f"s3://other/{moved}")]
    assert files_in_store(files, table, ObjectStore()) == tuple(files)
    (folder / present).write_bytes(b"x")
    assert files_in_store(files, table, ObjectStore()) == (files[0], files[2])
    assert files_in_store((), table, ObjectStore()) == ()


def test_all_stay_known_if_the_store_cannot_be_listed(tmp_path: Path) -> None:
    table = MemoryCatalog(tmp_path).load()
    files = [replaced(f"{table.data_location}/orders-{new_id().lower()}.parquet")]
    assert files_in_store(files, table, _Unlisted()) == tuple(files)


class _Unlisted(ObjectStore):
    def walk(self, folder: str) -> Iterator[tuple[ListedObject, ...]]:
        raise StorageError("the list was refused", path=folder)


def replaced(path: str) -> ReplacedFile:
    stored = StoredRange.of(span(0, 0, 10))
    return ReplacedFile(path=path, range=stored, replaced_by="B", reason="compact: commit B")
