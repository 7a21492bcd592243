from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from archiver.errors import ConfigError, StorageError
from archiver.storage.spool import TaskSpool, clean_spool, dead_folders

DIES = """
import os, signal, sys
from pathlib import Path
from archiver.storage.spool import TaskSpool
with TaskSpool(Path(sys.argv[1])) as spool:
    spool.keep(spool.create("half"), "whole")
    spool.create("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def a_task_dies(root: Path) -> None:
    subprocess.run([sys.executable, "-c", DIES, str(root)], check=False)
    assert list(root.glob("task-*/half"))


def left(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def rights(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_tasks_folder_is_gone_with_it(tmp_path: Path):
    with TaskSpool(tmp_path) as spool:
        file = spool.create("a")
        assert clean_spool(tmp_path) == 0
        assert file.path.exists()
    assert list(tmp_path.iterdir()) == []


def test_nobody_else_can_look_into_it(tmp_path: Path):
    root = tmp_path / "made" / "spool"
    before = os.umask(0)
    try:
        with TaskSpool(root) as spool:
            file = spool.create("a")
            assert rights(file.path) == 0o600
            kept = spool.keep(spool.create("b"), "b")
            assert rights(kept) == 0o600
            folders = {root.parent, root, file.path.parent, kept.parent}
            assert {rights(folder) for folder in folders} == {0o700}
    finally:
        os.umask(before)


def test_a_folder_of_ours_that_was_open_to_others_is_closed(tmp_path: Path):
    root = tmp_path / "spool"
    root.mkdir(mode=0o755)
    root.chmod(0o777)
    with TaskSpool(root):
        assert rights(root) == 0o700
    root.chmod(0o755)
    assert clean_spool(root) == 0
    assert rights(root) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_refused(tmp_path: Path):
    root = tmp_path / "spool"
    root.mkdir()
    os.chown(root, 65534, -1)
    with pytest.raises(ConfigError, match="another user") as failure, TaskSpool(root):
        pass
    assert (failure.value.context["owner"], failure.value.context["key"]) == (65534, "archive.spool")
    with pytest.raises(ConfigError, match="another user"):
        clean_spool(root)
    assert left(root) == []


@pytest.mark.parametrize("leads_to", ["there", "nowhere"])
def test_a_link_is_refused(tmp_path: Path, leads_to: str):
    (tmp_path / "there").mkdir()
    (tmp_path / "spool").symlink_to(tmp_path / leads_to)
    with pytest.raises(ConfigError, match="symbolic link"), TaskSpool(tmp_path / "spool"):
        pass
    with pytest.raises(ConfigError, match="symbolic link"):
        clean_spool(tmp_path / "spool")
    assert left(tmp_path / "there") == []


def test_a_link_in_the_place_of_the_kept_files_is_refused(tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    root = tmp_path / "spool"
    with TaskSpool(root) as spool:
        (root / "kept").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StorageError, match=r"kept.*"):
            spool.keep(spool.create("a"), "a")
    assert left(tmp_path / "elsewhere") == []


def test_a_folder_put_in_the_place_of_the_tasks_own_gets_nothing(tmp_path: Path):
    root = tmp_path / "spool"
    with TaskSpool(root) as spool:
        root.rename(tmp_path / "away")
        root.mkdir()
        spool.create("a")
        assert [path.name for path in (tmp_path / "away").rglob("a")] == ["a"]
        assert left(root) == []


def test_the_dead_are_cleaned_and_kept_files_stay(tmp_path: Path):
    a_task_dies(tmp_path)
    assert len(dead_folders(tmp_path)) == 1
    assert clean_spool(tmp_path) == 1
    assert left(tmp_path) == ["kept", "kept/whole"]


def test_cleanup_covers_dead_tasks_of_this_machine_only(tmp_path: Path):
    """On a cluster no job sees the workers' disks."""
    a_task_dies(tmp_path)
    with TaskSpool(tmp_path) as first:
        file = first.create("a")
        assert left(tmp_path) == sorted(
            ["kept", "kept/whole", file.path.parent.name, f"{file.path.parent.name}/a", f"{file.path.parent.name}/lock"]
        )
        with TaskSpool(tmp_path):
            assert file.path.exists()


def test_a_folder_that_is_being_made_is_left_alone(tmp_path: Path):
    young = tmp_path / "task-young"
    young.mkdir()
    assert clean_spool(tmp_path) == 0
    os.utime(young, (time.time() - 120,) * 2)
    assert clean_spool(tmp_path) == 1


def test_what_a_link_leads_to_is_not_cleaned(tmp_path: Path):
    present = tmp_path / "there"
    present.mkdir()
    (present / "theirs").touch()
    os.utime(present, (time.time() - 120,) * 2)
    root = tmp_path / "spool"
    root.mkdir()
    (root / "task-link").symlink_to(present)
    assert clean_spool(root) == 0
    assert left(present) == ["theirs"]


def test_a_spool_that_can_not_be_used_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="spool"), TaskSpool(tmp_path / "file"):
        pass


def test_a_file_is_never_overwritten(tmp_path: Path):
    with TaskSpool(tmp_path) as spool:
        spool.create("a")
        with pytest.raises(StorageError, match="can't write to the spool"):
            spool.create("a")


def test_no_spool_has_no_dead(tmp_path: Path):
    assert clean_spool(tmp_path / "nowhere") == 0
    assert dead_folders(tmp_path / "nowhere") == ()
