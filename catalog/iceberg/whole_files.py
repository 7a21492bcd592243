"""Metadata files that are made in memory and written in one piece.

pyiceberg writes an Avro file in hundreds of pieces, each a call of the store's client, and then asks the store for its
length. Manifests are a few KB, and merged ones some MB.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

from pyiceberg.io import FileIO, InputFile, OutputFile


class WholeFiles(FileIO):
    """A FileIO whose files are written in one piece when they are closed. All else is left to `io`."""

    def __init__(self, io: FileIO) -> None:
        super().__init__(io.properties)
        self._io = io

    def new_input(self, location: str) -> InputFile:
        """A file to read."""
        return self._io.new_input(location)

    def new_output(self, location: str) -> OutputFile:
        """A file to write."""
        return _WholeFile(self._io.new_output(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file."""
        self._io.delete(location)


class _WholeFile(OutputFile):
    def __init__(self, file: OutputFile) -> None:
        super().__init__(file.location)
        self._file = file
        self._written: int | None = None

    def __len__(self) -> int:
        return len(self._file) if self._written is None else self._written

    def exists(self) -> bool:
        return self._file.exists()

    def to_input_file(self) -> InputFile:
        return self._file.to_input_file()

    def create(self, overwrite: bool = False) -> _Pieces:
        return _Pieces(partial(self._write, overwrite=overwrite))

    def _write(self, data: bytearray, *, overwrite: bool) -> None:
        with self._file.create(overwrite=overwrite) as stream:
            stream.write(bytes(data))
        self._written = len(data)


class _Pieces:
    """What was written so far. It is written to the store only by `close`, never because nobody needs it any more."""

    def __init__(self, write: Callable[[bytearray], None]) -> None:
        self._data = bytearray()
        self._write = write
        self._is_closed = False

    def write(self, piece: bytes) -> int:
        self._data += piece
        return len(piece)

    def tell(self) -> int:
        return len(self._data)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._write(self._data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
