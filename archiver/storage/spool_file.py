"""A file in the spool. It stays open from its creation to its upload, so that it can't be swapped.

Libraries that need a path get `/dev/fd/N`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Self

import pyarrow as pa

from archiver.errors import StorageError


class SpoolFile:
    """A new file that only this user can read. It stays open until `close` or `remove`."""

    def __init__(self, path: Path, descriptor: int, folder: int | None) -> None:
        self.path = path
        self._descriptor = descriptor
        self._folder = folder

    @classmethod
    def create(cls, path: Path, *, folder: int | None = None) -> Self:
        """Make the file, which must not exist, in the folder with this descriptor. Raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        name = path if folder is None else path.name
        return cls(path, os.open(name, flags, 0o600, dir_fd=folder), folder)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def uri(self) -> str:
        """The URI of the open file, valid in this process."""
        return f"file://{self._open_path}"

    @property
    def size(self) -> int:
        """Bytes written."""
        return os.fstat(self._descriptor).st_size

    def sink(self) -> pa.NativeFile:
        """Open a stream that writes the file from its start."""
        return pa.OSFile(self._open_path, "wb")

    def reader(self) -> BinaryIO:
        """Open a stream of the file's bytes, from its start. The caller closes it."""
        stream = os.fdopen(os.dup(self._descriptor), "rb")
        stream.seek(0)
        return stream

    def move(self, folder: int, path: Path) -> None:
        """Move the file to `path` in the folder with this descriptor, replacing a file there. Raises OSError."""
        os.replace(self._name, path.name, src_dir_fd=self._folder, dst_dir_fd=folder)
        self.path = path
        self._folder = None

    def remove(self) -> None:
        """Close and remove the file. It may be gone already."""
        try:
            os.unlink(self._name, dir_fd=self._folder)
        except FileNotFoundError:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Close the file. Closing it again does nothing."""
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
    """Make the error that explains why the spool can't be written to."""
    return StorageError(
        "can't write to the spool: check that the folder exists, belongs to this user and has room",
        file=str(path),
        cause=str(error),
    )
