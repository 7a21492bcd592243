"""The formats of data files: the one place that names them. New files get one; files of all are read.

A reader goes by the name in the file's manifest entry, or by the end of its path where no manifest has the file.
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
"""Iceberg's names of formats that data files may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFormats:
    """The formats that a job knows: new files are `written` in one, files of the `others` are read too. Picklable.

    ValueError where two share a name or an extension, or where Iceberg has no data files of such a name.
    """

    written: SegmentFormat
    others: tuple[SegmentFormat, ...] = ()

    def __post_init__(self) -> None:
        names, extensions = [each.name for each in self.known], {each.extension for each in self.known}
        if not {*names} <= _ALLOWED or not len({*names}) == len(extensions) == len(self.known):
            msg = f"formats need a name out of {sorted(_ALLOWED)} and an extension, each their own: {names}"
            raise ValueError(msg)

    @property
    def known(self) -> tuple[SegmentFormat, ...]:
        """All formats, the one of new files first."""
        return (self.written, *self.others)

    @property
    def extensions(self) -> frozenset[str]:
        """What names of data files end in."""
        return frozenset(each.extension for each in self.known)

    def named(self, name: str, path: str) -> SegmentFormat:
        """The format of this name; UnknownFormat, which names the file at `path`, where there is none."""
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
        """The format of a file of ours by its name; UnknownFormat where its end says none."""
        extension = path.rpartition("/")[2].rpartition(".")[2]
        return next((each for each in self.known if each.extension == extension), None) or self.named(extension, path)


FORMATS: Final = SegmentFormats(written=ParquetFormat())
"""What jobs and replays use unless they are given others."""
