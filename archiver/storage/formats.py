"""The formats of data files, which only this module names.

The manifest entry names a file's format, or else its extension does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyiceberg.manifest import FileFormat

from archiver.errors import UnknownFormat
from archiver.storage.parquet import ParquetFormat
from archiver.storage.parquet.term_leaves import LEAF_ROWS, LeafReader, write_leaves
from archiver.storage.parquet.value_hashes import can_be_hashed, value_hashes
from archiver.storage.segment import SegmentFormat

__all__ = ["FORMATS", "LEAF_ROWS", "LeafReader", "SegmentFormats", "can_be_hashed", "value_hashes", "write_leaves"]

_ALLOWED: Final = frozenset(
    file_format.value.lower() for file_format in FileFormat if file_format is not FileFormat.PUFFIN
)
"""Names of the formats that Iceberg allows for data files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFormats:
    """A job writes `written`. Picklable.

    `dense` costs more CPU for smaller files. Raises ValueError if names or extensions clash, or Iceberg doesn't allow
    the format.
    """

    written: SegmentFormat
    others: tuple[SegmentFormat, ...] = ()
    dense: SegmentFormat | None = None

    def __post_init__(self) -> None:
        names, extensions = (
            [segment_format.name for segment_format in self.known],
            {segment_format.extension for segment_format in self.known},
        )
        if not {*names} <= _ALLOWED or not len({*names}) == len(extensions) == len(self.known):
            msg = f"formats need a name out of {sorted(_ALLOWED)} and an extension, each their own: {names}"
            raise ValueError(msg)

    @property
    def known(self) -> tuple[SegmentFormat, ...]:
        return (self.written, *self.others)

    @property
    def densest(self) -> SegmentFormat:
        """For files that are often read."""
        return self.dense or self.written

    @property
    def extensions(self) -> frozenset[str]:
        return frozenset(segment_format.extension for segment_format in self.known)

    def named(self, name: str, path: str) -> SegmentFormat:
        """Raises UnknownFormat, with `path`."""
        match = next((candidate for candidate in self.known if candidate.name == name), None)
        if match is None:
            raise UnknownFormat(
                "a data file has a format that the archiver doesn't read: rewrite the table's files in one that it"
                " reads",
                file=path,
                format=name,
                reads=", ".join(segment_format.name for segment_format in self.known),
            )
        return match

    def of_path(self, path: str) -> SegmentFormat:
        """By the extension. Raises UnknownFormat."""
        extension = path.rpartition("/")[2].rpartition(".")[2]
        return next((candidate for candidate in self.known if candidate.extension == extension), None) or self.named(
            extension, path
        )


FORMATS: Final = SegmentFormats(written=ParquetFormat(), dense=ParquetFormat(compression_level=9))
"""The default formats of jobs and replays."""
