"""The formats of data files. Only this module names them. New files are written in one; all can be read.

The file's manifest entry says its format. If no manifest has the file, the end of its path does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyiceberg.manifest import FileFormat

from archiver.errors import UnknownFormat
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import SegmentFormat

__all__ = ["FORMATS", "SegmentFormats"]

_ALLOWED: Final = frozenset(each.value.lower() for each in FileFormat if each is not FileFormat.PUFFIN)
"""The names of formats that Iceberg allows for data files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFormats:
    """The formats that a job knows. It writes new files in `written`, and reads those and the `others`. Picklable.

    `dense` is the format of `written` as a job writes it that may spend more CPU on smaller files.
    Raises ValueError if two formats share a name or an extension, or if Iceberg has no such format for data files.
    """

    written: SegmentFormat
    others: tuple[SegmentFormat, ...] = ()
    dense: SegmentFormat | None = None

    def __post_init__(self) -> None:
        names, extensions = [each.name for each in self.known], {each.extension for each in self.known}
        if not {*names} <= _ALLOWED or not len({*names}) == len(extensions) == len(self.known):
            msg = f"formats need a name out of {sorted(_ALLOWED)} and an extension, each their own: {names}"
            raise ValueError(msg)

    @property
    def known(self) -> tuple[SegmentFormat, ...]:
        """All formats; the one for new files comes first."""
        return (self.written, *self.others)

    @property
    def densest(self) -> SegmentFormat:
        """The format for files that are written once and read often."""
        return self.dense or self.written

    @property
    def extensions(self) -> frozenset[str]:
        """The extensions of data files, one for each format."""
        return frozenset(each.extension for each in self.known)

    def named(self, name: str, path: str) -> SegmentFormat:
        """Return the format of this name. Raises UnknownFormat, which names the file at `path`, if there is none."""
        found = next((each for each in self.known if each.name == name), None)
        if found is None:
            raise UnknownFormat(
                "a data file has a format that the archiver doesn't read: rewrite the table's files in one that it"
                " reads",
                file=path,
                format=name,
                reads=", ".join(each.name for each in self.known),
            )
        return found

    def of_path(self, path: str) -> SegmentFormat:
        """Return the format of one of our files by its extension. Raises UnknownFormat if none has this extension."""
        extension = path.rpartition("/")[2].rpartition(".")[2]
        return next((each for each in self.known if each.extension == extension), None) or self.named(extension, path)


FORMATS: Final = SegmentFormats(written=ParquetFormat(), dense=ParquetFormat(compression_level=9))
"""The formats that jobs and replays use, unless they are given others."""
