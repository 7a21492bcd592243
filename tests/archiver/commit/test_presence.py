"""Files on an unmounted or damaged disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyiceberg.table.update import SetPropertiesUpdate

from archiver.commit.presence import Presence
from archiver.errors import StorageUnavailable
from archiver.storage.objects import ObjectStore
from catalog.iceberg.append import prepare
from catalog.model import TranslatedRange, new_id
from tests.support.catalog.memory import TOPIC, MemoryCatalog, span


class Rejections:
    def __init__(self) -> None:
        self.ids: list[str] = []

    def reject(self, _: Any, range_ids: list[str], *, reason: str) -> None:
        assert "nowhere" not in reason
        self.ids += range_ids


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    folder = tmp_path / "mount"
    (folder / "data").mkdir(parents=True)
    return folder


@pytest.fixture
def lake(mount: Path) -> MemoryCatalog:
    return MemoryCatalog(mount)


def written(folder: Path, start: int, end: int, partition: int = 0) -> TranslatedRange:
    range_ = span(partition, start, end)
    path = folder / f"{range_.id}.parquet"
    path.write_bytes(b"x" * 10)
    assert range_.file is not None
    return replace(range_, files=(replace(range_.file, path=path.as_uri(), size_bytes=10),))


def append(lake: MemoryCatalog, *ranges: TranslatedRange) -> None:
    lake.apply(prepare(lake.load(), ranges, change=None, commit_id=new_id()))


def local(one: TranslatedRange) -> Path:
    assert one.file is not None
    return Path(one.file.path.removeprefix("file://"))


def presence(lake: MemoryCatalog) -> tuple[Presence, Rejections]:
    rejections = Rejections()
    return Presence(topic=TOPIC, objects=ObjectStore(), missing=cast("Any", rejections), load=lake.load), rejections


def test_an_empty_mount_says_nothing_of_the_files(lake: MemoryCatalog, mount: Path) -> None:
    append(lake, written(mount / "data", 0, 10))
    staged = written(mount / "data", 10, 20)
    mount.rename(mount.with_name("away"))
    (mount / "data").mkdir(parents=True)
    later = written(mount / "data", 20, 30)  # the mount fills with new files, and is the wrong one all the same
    looks, events = presence(lake)
    with pytest.raises(StorageUnavailable, match="nor are the table's own files") as error:
        looks.check((staged, later))
    assert error.value.context["also_missing"].endswith(".avro")
    assert events.ids == []


def test_a_file_that_is_gone_takes_what_follows_with_it(lake: MemoryCatalog, mount: Path) -> None:
    append(lake, written(mount / "data", 0, 10))
    first, second, third = (written(mount / "data", start, start + 5) for start in (10, 15, 20))
    fourth = written(mount / "data", 0, 5, partition=1)
    local(second).unlink()
    looks, events = presence(lake)
    assert looks.check((first, second, third, fourth)) == (first, fourth)
    assert events.ids == [second.id, third.id]


def test_a_file_of_another_size_is_not_the_one_that_was_staged(lake: MemoryCatalog, mount: Path) -> None:
    append(lake, written(mount / "data", 0, 10))
    range_ = written(mount / "data", 10, 20)
    local(range_).write_bytes(b"cut")
    looks, events = presence(lake)
    assert looks.check((range_,)) == ()
    assert events.ids == [range_.id]


@pytest.mark.parametrize("has_files", [False, True])
def test_metadata_elsewhere_says_nothing_of_the_data(lake: MemoryCatalog, tmp_path: Path, *, has_files: bool) -> None:
    """With `write.data.path` on another disk, only data files show which table it is."""
    disk = tmp_path / "disk"
    disk.mkdir()
    lake.change(SetPropertiesUpdate(updates={"write.data.path": disk.as_uri()}))
    first, gone = written(disk, 0, 10), written(disk, 10, 20)
    if has_files:
        append(lake, first)
    local(gone).unlink()
    looks, events = presence(lake)
    if has_files:
        assert looks.check((gone,)) == ()
        assert events.ids == [gone.id]
        local(first).unlink()
        events.ids.clear()
    with pytest.raises(StorageUnavailable):
        looks.check((gone,))
    assert events.ids == []


def test_a_range_lacks_what_one_of_its_files_lacks(lake: MemoryCatalog, mount: Path) -> None:
    first, second, third = (written(mount / "data", *value) for value in ((10, 20), (10, 20), (20, 30)))
    whole = replace(first, files=(*first.files, *second.files))
    append(lake, written(mount / "data", 0, 10))
    looks, events = presence(lake)
    assert looks.check((whole, third)) == (whole, third)
    local(second).unlink()
    assert looks.check((whole, third)) == ()
    assert events.ids == [whole.id, third.id]
