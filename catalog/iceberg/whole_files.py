"""Metadata files made in memory and written in one piece, instead of pyiceberg's hundreds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Final, Self, cast

from pyiceberg.io import FileIO, InputFile, OutputFile

from catalog.iceberg.manifest_lists import BytesFile
from catalog.iceberg.written_lists import WrittenLists

_LIST_PREFIX: Final = "snap-"
"""How the names of manifest lists begin. Each name is used once: it has the id of its snapshot and of the attempt."""


class WholeFiles(FileIO):
    """Files are written on close.

    A list in `written` isn't read the first time if the store has one of its size.
    """

    def __init__(self, io: FileIO, written: WrittenLists) -> None:
        super().__init__(io.properties)
        self._io = io
        self._written = written

    def new_input(self, location: str) -> InputFile:
        content, file = self._written.take(location), self._io.new_input(location)
        return file if content is None or len(file) != len(content) else cast("InputFile", BytesFile(content))

    def new_output(self, location: str) -> OutputFile:
        is_list = location.rpartition("/")[2].startswith(_LIST_PREFIX)
        return _WholeFile(self._io.new_output(location), partial(self._written.put, location) if is_list else None)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self._io.delete(location)


class _WholeFile(OutputFile):
    def __init__(self, file: OutputFile, keep: Callable[[bytes], None] | None) -> None:
        super().__init__(file.location)
        self._file = file
        self._keep = keep
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
        content = bytes(data)
        with self._file.create(overwrite=overwrite) as stream:
            stream.write(content)
        self._written = len(content)
        if self._keep is not None:
            self._keep(content)


class _Pieces:
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
