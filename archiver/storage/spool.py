"""The spool: local files to upload, in a locked subfolder per task.

The next task removes unlocked ones. Files that storage denied stay in `kept` until a person looks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from archiver.errors import ConfigError, StorageError
from archiver.storage.private_folder import KEY, make_below, make_folder, open_below, open_folder
from archiver.storage.spool_file import SpoolFile, spool_error
from catalog.model import new_id

KEPT: Final = "kept"
_TASK: Final = "task-"
_LOCK: Final = "lock"
_BIRTH_SECONDS: Final = 60.0
"""How long a new folder may have no lock. An older folder without one was left by a dead task."""


class TaskSpool:
    """A task's folder, removed at the end. Entering also removes dead tasks' folders."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._name = f"{_TASK}{new_id()}"
        self._root_descriptor = self._folder = self._lock = -1
        self._files: list[SpoolFile] = []

    def __enter__(self) -> Self:
        self._root_descriptor = make_folder(self._root)
        try:
            _clean(self._root_descriptor)
            self._folder = make_below(self._root_descriptor, self._name)
            flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
            self._lock = os.open(f"{_LOCK}.new", flags, 0o600, dir_fd=self._folder)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            os.rename(  # no process sees the lock file before it is locked
                f"{_LOCK}.new", _LOCK, src_dir_fd=self._folder, dst_dir_fd=self._folder
            )
        except OSError as error:
            self._leave()
            raise StorageError(
                f"The spool can't be used: {error}; set [archive] spool to a folder that this user may write to",
                folder=str(self._root),
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def create(self, name: str) -> SpoolFile:
        """The file is removed with the task unless kept. Raises StorageError."""
        path = self._root / self._name / name
        try:
            file = SpoolFile.create(path, folder=self._folder)
        except OSError as error:
            raise spool_error(error, path) from error
        self._files.append(file)
        return file

    def keep(self, file: SpoolFile, name: str) -> Path:
        """Replaces a file of this name. Raises StorageError."""
        path = self._root / KEPT / name
        try:
            kept = make_below(self._root_descriptor, KEPT)
            try:
                file.move(kept, path)
            finally:
                os.close(kept)
        except OSError as error:
            raise spool_error(error, path) from error
        file.close()
        return path

    def _leave(self) -> None:
        for file in self._files:
            file.close()
        if self._folder >= 0:
            shutil.rmtree(self._name, ignore_errors=True, dir_fd=self._root_descriptor)
        for descriptor in (self._lock, self._folder, self._root_descriptor):
            if descriptor >= 0:
                os.close(descriptor)
        self._root_descriptor = self._folder = self._lock = -1


def check_spool(root: Path) -> None:
    """Raises ConfigError if this user can't use it. Call it on the machine of the tasks."""
    try:
        with TaskSpool(root):
            pass
    except StorageError as error:
        raise ConfigError(error.message, key=KEY, **error.context) from error


def clean_spool(root: Path) -> int:
    """Return the number of removed folders. Raises ConfigError if `root` isn't this user's alone."""
    with _opened(root) as folder:
        return 0 if folder is None else _clean(folder)


def dead_folders(root: Path) -> tuple[str, ...]:
    """Raises as `clean_spool`."""
    with _opened(root) as folder:
        return () if folder is None else _dead(folder)


@contextmanager
def _opened(root: Path) -> Iterator[int | None]:
    if not root.exists() and not root.is_symlink():
        yield None
        return
    folder = open_folder(root)
    try:
        yield folder
    finally:
        os.close(folder)


def _clean(root: int) -> int:
    dead = _dead(root)
    for name in dead:
        shutil.rmtree(name, ignore_errors=True, dir_fd=root)
    return len(dead)


def _dead(root: int) -> tuple[str, ...]:
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(_TASK)]
    return tuple(name for name in sorted(names) if not _is_held(root, name))


def _is_held(root: int, name: str) -> bool:
    try:
        folder = open_below(root, name)
    except OSError:
        return True  # already removed, or a link, or another user's: no dead task's folder
    try:
        lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return time.time() - os.fstat(folder).st_mtime < _BIRTH_SECONDS
    finally:
        os.close(folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return True
        raise
    else:
        return False
    finally:
        os.close(lock)
