"""A sorted run of batches in a nameless temporary file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO

import pyarrow as pa

from archiver.errors import StorageError


class SpilledRun:
    """`head` is the first remaining batch, or None."""

    def __init__(self, batches: Iterable[pa.RecordBatch], folder: Path | None, *, piece_bytes: int) -> None:
        self._folder = _usable(folder)
        self._left = 0
        with self._errors():
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=self._folder, prefix="archiver-")  # noqa: SIM115
        try:
            with self._errors():
                self._write(_pieces(batches, piece_bytes))
                self._file.seek(0)
                self._reader = pa.ipc.open_stream(self._file)
            self.head: pa.RecordBatch | None = None
            self.advance()
        except BaseException:
            with suppress(OSError):  # closing flushes, which fails again after a failed write
                self._file.close()
            raise

    @property
    def has_more(self) -> bool:
        return self._left > 0

    def advance(self) -> None:
        if not self._left:
            self.close()
            return
        with self._errors():
            self.head = self._reader.read_next_batch()
        self._left -= 1

    def close(self) -> None:
        self.head, self._left = None, 0
        self._file.close()

    def _write(self, pieces: Iterator[pa.RecordBatch]) -> None:
        first = next(pieces)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_stream(self._file, first.schema, options=options) as writer:
            for piece in chain((first,), pieces):
                writer.write_batch(piece)
                self._left += 1

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise StorageError(
                "records that have to wait for others can't be put aside: give the folder room, or set [archive] spool "
                "to one that has it",
                folder=str(self._folder),
                cause=str(error),
            ) from error


def _pieces(batches: Iterable[pa.RecordBatch], piece_bytes: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = max(1, batch.num_rows * piece_bytes // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _usable(folder: Path | None) -> Path:
    if folder is not None and folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
        return folder
    return Path(tempfile.gettempdir())
