"""The folder of a log on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.errors import ConfigError, TopicBusy
from archiver.intake.disk import LocalDisk


def test_a_file_has_its_room_from_the_start(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path / "wal" / "t")
    file = disk.create("a.new", reserve=100)
    file.write(b"abc")
    file.write(b"de")
    file.sync()
    disk.rename("a.new", "a")
    disk.sync_folder()
    assert (disk.size("a"), disk.read("a", 6)) == (100, b"abcde\0")
    assert disk.names() == ("a",)
    with pytest.raises(FileExistsError):
        disk.create("a", reserve=1)
    disk.remove("a")
    disk.remove("a")
    assert disk.names() == ()
    file.close()
    disk.close()
    assert (tmp_path / "wal").stat().st_mode & 0o777 == 0o700


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    with pytest.raises(TopicBusy, match="another process has the topic's write-ahead log open"):
        LocalDisk(tmp_path)
    disk.close()
    LocalDisk(tmp_path).close()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError) as caught:
        LocalDisk(tmp_path / "file")
    assert caught.value.context["key"] == "flight.wal"
