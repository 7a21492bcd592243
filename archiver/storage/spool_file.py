"""A spool file, open until its upload so that it can't be swapped. Libraries get `/dev/fd/N`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Self

import pyarrow as pa

from archiver.errors import StorageError


class SpoolFile:
    def __init__(self, path: Path, descriptor: int, folder: int | None) -> None:
        self.path = path
        self._descriptor = descriptor
        self._folder = folder

    @classmethod
    def create(cls, path: Path, *, folder: int | None = None) -> Self:
        """`folder` is a descriptor. Raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        name = path if folder is None else path.name
        return cls(path, os.open(name, flags, 0o600, dir_fd=folder), folder)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def uri(self) -> str:
        return f"file://{self._open_path}"

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def sink(self) -> pa.NativeFile:
        return pa.OSFile(self._open_path, "wb")

    def reader(self) -> BinaryIO:
        """The caller closes the stream."""
        stream = os.fdopen(os.dup(self._descriptor), "rb")
        stream.seek(0)
        return stream

    def move(self, folder: int, path: Path) -> None:
        """Move into `folder` (a descriptor), replacing a file. Raises OSError."""
        os.replace(self._name, path.name, src_dir_fd=self._folder, dst_dir_fd=folder)
        self.path = path
        self._folder = None

    def remove(self) -> None:
        try:
            os.unlink(self._name, dir_fd=self._folder)
        except FileNotFoundError:
            pass
        finally:
            self.close()

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    @property
    def _name(self) -> str | Path:
        return self.path if self._folder is None else self.path.name

    @property
    def _open_path(self) -> str:
        return f"/dev/fd/{self._descriptor}"


def spool_error(error: Exception, path: Path) -> StorageError:
    return StorageError(
        "can't write to the spool: check that the folder exists, belongs to this user and has room",
        file=str(path),
        cause=str(error),
    )
