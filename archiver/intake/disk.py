"""The folder of a topic's log. Names are file names without folders."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from archiver.errors import ConfigError, IntakeError, TopicBusy

_LOCK: Final = "lock"
_PRIVATE: Final = 0o600


class LogFile(Protocol):
    def write(self, data: bytes) -> None:
        """Append. Raises OSError."""

    def sync(self) -> None:
        """Make all written bytes durable. After an OSError the file must not be used again."""

    def close(self) -> None: ...


class Disk(Protocol):
    """Methods raise OSError. `remove` accepts missing files."""

    def names(self) -> tuple[str, ...]: ...

    def read(self, name: str, size: int | None = None) -> bytes: ...

    def size(self, name: str) -> int: ...

    def create(self, name: str, *, reserve: int) -> LogFile:
        """Reserves zero bytes."""

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, name: str) -> None: ...

    def sync_folder(self) -> None:
        """Make creations, renames and removals durable."""


class LocalFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class LocalDisk:
    """Private, and locked for this process until `close`."""

    def __init__(self, folder: Path) -> None:
        """Raises TopicBusy if another process has the folder, ConfigError if it can't be used."""
        try:
            missing = [path for path in (folder, *folder.parents) if not path.exists()]
            for path in reversed(missing):
                path.mkdir(mode=0o700)
                _sync(path.parent)
            self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._lock = os.open(_LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, _PRIVATE, dir_fd=self._folder)
        except OSError as error:
            raise ConfigError(
                f"the folder of the write-ahead log can't be used: {error.strerror}", key="flight.wal", path=str(folder)
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise TopicBusy("another process has the topic's write-ahead log open", path=str(folder)) from error

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(name for name in os.listdir(self._folder) if name != _LOCK))  # noqa: PTH208 - by descriptor

    def read(self, name: str, size: int | None = None) -> bytes:
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder), "rb") as file:
            return file.read() if size is None else file.read(size)

    def size(self, name: str) -> int:
        return os.stat(name, dir_fd=self._folder).st_size

    def create(self, name: str, *, reserve: int) -> LocalFile:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        descriptor = os.open(name, flags, _PRIVATE, dir_fd=self._folder)
        try:
            os.posix_fallocate(descriptor, 0, reserve)
        except OSError:
            os.close(descriptor)
            self.remove(name)
            raise
        return LocalFile(descriptor)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._folder)

    def sync_folder(self) -> None:
        os.fsync(self._folder)

    def close(self) -> None:
        os.close(self._lock)
        os.close(self._folder)


def disk_error(error: OSError, **context: object) -> IntakeError:
    return IntakeError(f"the disk of the write-ahead log failed: {error.strerror or error}", **context)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
