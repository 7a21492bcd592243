"""A FileIO made at the first file access, so that pyarrow isn't imported for metadata alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyiceberg.io import PY_IO_IMPL, FileIO, InputFile, OutputFile

_SCHEMES: Final = ("s3://", "s3a://", "s3n://", "file://")
"""Locations for which pyiceberg takes pyarrow's client, and making it neither fails nor asks anybody."""


class LateFileIO(FileIO):
    """`make` is called once."""

    def __init__(self, properties: Mapping[str, Any], make: Callable[[], FileIO]) -> None:
        super().__init__(dict(properties))
        self._make = make
        self._made: FileIO | None = None
        self._lock = threading.Lock()

    def new_input(self, location: str) -> InputFile:
        return self._opened().new_input(location)

    def new_output(self, location: str) -> OutputFile:
        return self._opened().new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self._opened().delete(location)

    def _opened(self) -> FileIO:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made


def may_be_late(properties: Mapping[str, Any], location: str | None) -> bool:
    """Otherwise the errors of making a FileIO must show at once."""
    return PY_IO_IMPL not in properties and (location or "").startswith(_SCHEMES)
