"""A table's FileIO that is made when a file is first read, written or deleted: pyarrow isn't imported before.

Whoever asks only for what a table's metadata says needs none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyiceberg.io import PY_IO_IMPL, FileIO, InputFile, OutputFile

_SCHEMES: Final = ("s3://", "s3a://", "s3n://", "file://")
"""Locations for which pyiceberg takes pyarrow's client, and making it neither fails nor asks anybody."""


class LateFileIO(FileIO):
    """Has the properties at once. `make` gives the FileIO that does the work, and is called once."""

    def __init__(self, properties: Mapping[str, Any], make: Callable[[], FileIO]) -> None:
        super().__init__(dict(properties))
        self._make = make
        self._made: FileIO | None = None
        self._lock = threading.Lock()

    def new_input(self, location: str) -> InputFile:
        """A file to read."""
        return self._opened().new_input(location)

    def new_output(self, location: str) -> OutputFile:
        """A file to write."""
        return self._opened().new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete a file."""
        self._opened().delete(location)

    def _opened(self) -> FileIO:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made


def may_be_late(properties: Mapping[str, Any], location: str | None) -> bool:
    """Whether a FileIO with these properties can be made later. Else it is made at once, so that its errors show."""
    return PY_IO_IMPL not in properties and (location or "").startswith(_SCHEMES)
