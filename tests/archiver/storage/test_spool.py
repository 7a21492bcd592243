from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from archiver.errors import StorageError
from archiver.storage.spool import TaskSpool, clean_spool


def test_a_tasks_folder_is_gone_with_it(tmp_path: Path):
    with TaskSpool(tmp_path) as spool:
        spool.file("a").write_bytes(b"1")
        assert clean_spool(tmp_path) == 0
        assert spool.file("a").exists()
    assert list(tmp_path.iterdir()) == []


def test_the_dead_are_cleaned_and_kept_files_stay(tmp_path: Path):
    program = """
import os, signal, sys
from pathlib import Path
from archiver.storage.spool import TaskSpool
with TaskSpool(Path(sys.argv[1])) as spool:
    spool.file("half").write_bytes(b"1")
    spool.keep(spool.file("half"), "whole")
    spool.file("half").write_bytes(b"1")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    with TaskSpool(tmp_path) as living:
        assert clean_spool(tmp_path) == 1
        assert living.file("lock").exists()
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["kept", "kept/whole"]


def test_a_folder_that_is_being_made_is_left_alone(tmp_path: Path):
    young = tmp_path / "task-young"
    young.mkdir()
    assert clean_spool(tmp_path) == 0
    os.utime(young, (time.time() - 120,) * 2)
    assert clean_spool(tmp_path) == 1


def test_a_spool_that_can_not_be_used_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="spool"), TaskSpool(tmp_path / "file"):
        pass
