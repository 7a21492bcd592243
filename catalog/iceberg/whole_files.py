"""Metadata files that are made in memory and written in one piece.

pyiceberg writes an Avro file in hundreds of pieces, each a call of the store's client, and then asks the store for its
length. Manifests are a few KB, and merged ones some MB.

A snapshot's manifest list is what the next snapshot is made from. Where one process makes both, it only asks whether
the list is still there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Final, Self, cast

from pyiceberg.io import FileIO, InputFile, OutputFile

from catalog.iceberg.manifest_lists import BytesFile

_LIST_PREFIX: Final = "snap-"
"""How the names of manifest lists begin. Each name is used once: it has the id of its snapshot and of the attempt."""


class WrittenLists:
    """The last manifest lists that were written, by location, up to so many bytes. Safe between threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lists: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def put(self, location: str, content: bytes) -> None:
        """Keep a list that the store has taken. The oldest go where there are too many bytes."""
        with self._lock:
            self._drop(location)
            if len(content) > self._most:
                return
            self._lists[location] = content
            self._bytes += len(content)
            while self._bytes > self._most:
                self._drop(next(iter(self._lists)))

    def take(self, location: str) -> bytes | None:
        """The list at this location, which isn't kept any longer: the next snapshot has a list of its own."""
        with self._lock:
            return self._drop(location)

    def _drop(self, location: str) -> bytes | None:
        content = self._lists.pop(location, None)
        self._bytes -= len(content or b"")
        return content


class WholeFiles(FileIO):
    """A FileIO whose files are written in one piece when they are closed. All else is left to `io`.

    A manifest list in `written` is not read from the store, the first time that it is asked for, if the store still has
    one of its size. A store that is away or empty is noticed so, before a snapshot refers to what was written into it.
    """

    def __init__(self, io: FileIO, written: WrittenLists) -> None:
        super().__init__(io.properties)
        self._io = io
        self._written = written

    def new_input(self, location: str) -> InputFile:
        """A file to read."""
        content, file = self._written.take(location), self._io.new_input(location)
        return file if content is None or len(file) != len(content) else cast("InputFile", BytesFile(content))

    def new_output(self, location: str) -> OutputFile:
        """A file to write."""
        is_list = location.rpartition("/")[2].startswith(_LIST_PREFIX)
        return _WholeFile(self._io.new_output(location), partial(self._written.put, location) if is_list else None)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file."""
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
