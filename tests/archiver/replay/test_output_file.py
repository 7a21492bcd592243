"""Output files get their name when whole."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from archiver.errors import ConfigError, ReplayError
from archiver.replay.output_file import OutputFile


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"old")
    with OutputFile(path) as output:
        output.write(b"new")
        output.writelines([b" and", b" whole"])
        assert path.read_bytes() == b"old"
        (partial,) = [name for name in names(tmp_path) if name != path.name]
        assert partial.endswith(".partial")
    assert path.read_bytes() == b"new and whole"
    assert output.size_bytes == 13
    assert names(tmp_path) == [path.name]
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with OutputFile(path) as output:
            output.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == [path.name]


def test_a_link_keeps_pointing(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there" / "file")
    with OutputFile(link) as output:
        output.write(b"x")
    assert link.is_symlink()
    assert (tmp_path / "there" / "file").read_bytes() == b"x"


def test_a_pipe_is_written_to_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as readers:
        read = readers.submit(pipe.read_bytes)
        with OutputFile(pipe) as output:
            output.write(b"x")
        assert read.result(10) == b"x"
    assert pipe.is_fifo()


def test_a_full_device_is_told(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(ReplayError, match="No space left") as error, OutputFile(full) as output:
        output.write(b"x" * (1 << 20))
    assert error.value.context["file"] == str(full)


@pytest.mark.parametrize("name", ["absent/records.jsonl", "."])
def test_a_place_that_takes_no_file_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be written"), OutputFile(tmp_path / name):
        pass


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
