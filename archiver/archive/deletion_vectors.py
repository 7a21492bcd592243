"""Deletion vectors: bitmaps of deleted rows in Puffin files, with checksums."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
from pyiceberg.io import FileIO
from pyiceberg.manifest import DATA_FILE_TYPE, DataFile, FileFormat
from pyroaring import BitMap64

from archiver.errors import BadSegment
from archiver.storage.exact_reads import read_exactly
from archiver.storage.objects import ObjectStore

ENTRY_VERSION: Final = 3
"""The first version of Iceberg's manifests with the positions of vectors. Earlier entries are read as this version,
too.
"""

_MAGIC: Final = b"\xd1\xd3\x39\x64"
_NUMBER: Final = 4
"""The bytes of a vector's length at its start and of its checksum at its end. The length counts neither."""
_LEAST: Final = _NUMBER + len(_MAGIC) + 8 + _NUMBER
"""The size of a vector without rows."""
_PLACES: Final = {field.name: index for index, field in enumerate(DATA_FILE_TYPE[ENTRY_VERSION].fields)}
_TOLD: Final = ("referenced_data_file", "content_offset", "content_size_in_bytes")
_RESTORE: Final = "restore the file from a backup or the store's versions"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVector:
    path: str
    data_file: str
    offset: int
    size: int
    rows: int

    @classmethod
    def of_entry(cls, delete: DataFile) -> Self:
        """Raise BadSegment if the entry is incomplete."""
        location = vector_place(delete)
        data_file, offset, size = (location[name] for name in _TOLD)
        if data_file is None or offset is None or size is None or offset < 0 or size < _LEAST:
            raise BadSegment(
                "a manifest doesn't say where a deletion vector lies, or of which data file it is: restore the manifest"
                " from a backup, or rewrite the table's data files",
                file=delete.file_path,
                **location,
            )
        return cls(path=delete.file_path, data_file=data_file, offset=offset, size=size, rows=delete.record_count)

    def positions(self, objects: ObjectStore) -> npt.NDArray[np.int64]:
        """Raise StorageError. Positions are sorted."""
        blob = objects.reading(self.path, self._blob)
        length, checked, checksum = blob[:_NUMBER], blob[_NUMBER:-_NUMBER], blob[-_NUMBER:]
        if (
            int.from_bytes(length, "big") != len(checked)
            or checked[: len(_MAGIC)] != _MAGIC
            or int.from_bytes(checksum, "big") != zlib.crc32(checked)
        ):
            raise self._damaged("a deletion vector's bytes aren't those that were written")
        try:
            bitmap = BitMap64.deserialize(checked[len(_MAGIC) :])
        except (ValueError, IndexError) as error:
            raise self._damaged("a deletion vector's bytes don't read as a bitmap", cause=str(error)) from error
        if len(bitmap) != self.rows:
            raise self._damaged("a deletion vector has other rows than its manifest says", found=len(bitmap))
        return np.frombuffer(bitmap.to_array(), np.uint64).astype(np.int64)

    def _blob(self, io: FileIO) -> bytes:
        with io.new_input(self.path).open() as stream:
            size, end = stream.seek(0, os.SEEK_END), self.offset + self.size
            if size < end:
                raise self._damaged("a file with deletion vectors was cut short", bytes=size)
            return bytes(read_exactly(stream, self.offset, end))

    def _damaged(self, what: str, **found: object) -> BadSegment:
        context = {"data_file": self.data_file, "offset": self.offset, "size": self.size, "rows": self.rows}
        return BadSegment(f"{what}: {_RESTORE}", file=self.path, **context, **found)


def is_vector(delete: DataFile) -> bool:
    return bool(delete.file_format == FileFormat.PUFFIN)


def vector_place(delete: DataFile) -> dict[str, Any]:
    return {name: delete[_PLACES[name]] if len(delete) > _PLACES[name] else None for name in _TOLD}
