"""The local folder where files wait for their upload: a subfolder for each task, bounded, and cleaned of the dead.

A task holds a lock on its subfolder, which the kernel drops with the process, however that ends; so a folder that can
be locked belongs to nobody. Files that storage denied lie in `kept`, and stay until a person has looked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from pathlib import Path
from typing import Final, Self

from archiver.errors import StorageError
from catalog.model import new_id

KEPT: Final = "kept"
_TASK: Final = "task-"
_LOCK: Final = "lock"
_BIRTH_SECONDS: Final = 60.0
"""A folder without a lock is being made, or its maker died over it: after so long it is the latter."""


class TaskSpool:
    """A task's own folder below `root`. Use as a context manager: the folder is gone afterwards."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / f"{_TASK}{new_id()}"
        self._lock = -1

    def __enter__(self) -> Self:
        try:
            self._folder.mkdir(parents=True)
            unlocked = self._folder / f"{_LOCK}.new"
            self._lock = os.open(unlocked, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            unlocked.rename(self._folder / _LOCK)  # never seen without its lock
        except OSError as error:
            raise StorageError(
                f"The spool can't be used: {error}; set [archive] spool to a folder that this user may write to",
                folder=str(self._root),
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)

    def file(self, name: str) -> Path:
        """The path of a file to write; it is gone with the task unless kept."""
        return self._folder / name

    def keep(self, file: Path, name: str) -> Path:
        """Move a file to where no task and no job removes it; one kept before under this name is replaced."""
        kept = self._root / KEPT
        kept.mkdir(exist_ok=True)
        return file.replace(kept / name)


def clean_spool(root: Path) -> int:
    """Remove what dead processes left below `root`; returns how many tasks' folders that were."""
    dead = dead_folders(root)
    for folder in dead:
        shutil.rmtree(folder, ignore_errors=True)
    return len(dead)


def dead_folders(root: Path) -> tuple[Path, ...]:
    """Folders of tasks whose process is dead."""
    return tuple(folder for folder in root.glob(f"{_TASK}*") if not _is_held(folder))


def _is_held(folder: Path) -> bool:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        return _age_seconds(folder) < _BIRTH_SECONDS
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(lock)


def _age_seconds(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0
