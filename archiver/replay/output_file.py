"""Output files, under a temporary name until they are complete."""

from __future__ import annotations

import os
import secrets
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from archiver.errors import ConfigError, ReplayError

PARTIAL = ".partial"


class _Output(ABC):
    def __init__(self) -> None:
        self.size_bytes = 0

    def write(self, data: bytes | memoryview) -> int:
        self._put(data)
        size = memoryview(data).nbytes
        self.size_bytes += size
        return size

    def writelines(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self.write(line)

    @abstractmethod
    def _put(self, data: bytes | memoryview) -> None: ...


class OutputFile(_Output):
    """A context manager, named `.partial` until all of the file is on disk.

    On errors that file is removed. A pipe or device is written to directly. Raises ConfigError if the file can't
    be created, ReplayError if it can't be written.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._target = path
        self._temporary: Path | None = None
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Raises ConfigError."""
        try:
            self._target = self.path.resolve()
            if self._target.exists() and not self._target.is_file() and not self._target.is_dir():
                self._file = self._target.open("wb")
                return self
            if self._target.is_dir():
                raise IsADirectoryError(21, "it is a folder")
            temporary = self._target.with_name(f".{self._target.name}.{secrets.token_hex(4)}{PARTIAL}")
            self._file = os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb")
            self._temporary = temporary
        except OSError as error:
            raise ConfigError(f"The output file cannot be written: {error.strerror}", file=str(self.path)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        file, self._file = self._file, None
        assert file is not None
        if error is not None:
            self._drop(file)
            return
        try:
            file.flush()
            if self._temporary is None:
                file.close()
                return
            os.fsync(file.fileno())
            file.close()
            self._temporary.replace(self._target)
            _sync_folder(self._target.parent)
        except OSError as failure:
            self._drop(file)
            raise self._failed(failure) from failure

    def _put(self, data: bytes | memoryview) -> None:
        assert self._file is not None
        try:
            self._file.write(data)
        except OSError as error:
            raise self._failed(error) from error

    def flush(self) -> None: ...

    @property
    def closed(self) -> bool:
        return self._file is None

    def _drop(self, file: IO[bytes]) -> None:
        with suppress(OSError):  # it is removed
            file.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> ReplayError:
        kept = "the incomplete file was removed" if self._temporary is not None else "what was written stays"
        return ReplayError(
            f"The output can't be written: {error.strerror}; {kept}. Make room, or write elsewhere",
            file=str(self.path),
            written_bytes=self.size_bytes,
        )


class StandardOutput(_Output):
    """Raises BrokenPipeError if its reader is gone, else ReplayError."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def _put(self, data: bytes | memoryview) -> None:
        try:
            sys.stdout.buffer.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failed(error) from error

    def flush(self) -> None:
        try:
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> ReplayError:
        return ReplayError(
            f"Standard output can't be written: {error.strerror}. Make room, or write elsewhere",
            written_bytes=self.size_bytes,
        )


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
