"""Journal summaries: one object with the unchanged entries of many commits (docs/stored-files.md)."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from catalog.journal_entries import (
    COMMIT_FORMATS,
    MERGED_FORMAT,
    SUMMARY_FORMAT,
    JournaledCommit,
    check_format,
)

_LEVEL: Final = 6
_GZIP: Final = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True, order=True)
class CommitEntry:
    """`data` is the one line of the commit's object."""

    name: str
    data: bytes

    @property
    def commit(self) -> JournaledCommit:
        """Raises RegistryOutdated for a newer archiver's; ValueError, KeyError or TypeError if damaged."""
        return JournaledCommit.from_json(json.loads(self.data))

    @property
    def line(self) -> bytes:
        return b"%b %b\n" % (self.name.encode(), self.data)


@dataclass(frozen=True, slots=True)
class JournalSummary:
    """Entries by name. A name comes twice if two objects of one commit differ."""

    entries: tuple[CommitEntry, ...]

    @classmethod
    def of(cls, entries: Iterable[CommitEntry]) -> Self:
        """At least one entry."""
        return cls(tuple(sorted(set(entries))))

    @property
    def size(self) -> int:
        return sum(len(entry.line) for entry in self.entries)

    def to_bytes(self) -> bytes:
        """Equal entries give equal bytes."""
        lines = b"".join(entry.line for entry in self.entries)
        value = {
            "format": SUMMARY_FORMAT,
            "entries": len(self.entries),
            "first": self.entries[0].name,
            "last": self.entries[-1].name,
            "bytes": len(lines),
            "sha256": hashlib.sha256(lines).hexdigest(),
            "lines": base64.b64encode(gzip.compress(lines, _LEVEL, mtime=0)).decode(),
        }
        return json.dumps(value, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Raises ValueError, KeyError or TypeError if damaged."""
        size = int(value["bytes"])
        unpacking = zlib.decompressobj(_GZIP)
        try:
            lines = unpacking.decompress(base64.b64decode(value["lines"], validate=True), size + 1)
        except zlib.error as error:
            raise ValueError(f"the entries can't be unpacked: {error}") from error
        if len(lines) != size or hashlib.sha256(lines).hexdigest() != value["sha256"]:
            raise ValueError("the entries aren't those that the summary was made of")
        summary = cls(tuple(map(_entry, lines.splitlines(keepends=True))))
        names = [entry.name for entry in summary.entries]
        if (len(names), names[:1], names[-1:]) != (value["entries"], [value["first"]], [value["last"]]):
            raise ValueError("the summary says other entries than it has")
        return summary


def entries_in(name: str, data: bytes) -> Iterator[CommitEntry]:
    """The object is an entry, a summary, or a merged object of an older archiver.

    Raises RegistryOutdated for a newer archiver's; ValueError, KeyError or TypeError if damaged.
    """
    value = json.loads(data)
    check_format(value, *COMMIT_FORMATS, MERGED_FORMAT, SUMMARY_FORMAT)
    if value["format"] == SUMMARY_FORMAT:
        yield from JournalSummary.from_json(value).entries
    elif value["format"] == MERGED_FORMAT:
        for commit, entry in value["commits"].items():
            yield CommitEntry(commit, _compact(entry))
    else:
        yield CommitEntry(name, data if _is_line(data) else _compact(value))


def _entry(line: bytes) -> CommitEntry:
    name, space, data = line.partition(b" ")
    if not space or not data.endswith(b"\n"):
        raise ValueError("a line of the summary is no entry")
    return CommitEntry(name.decode(), data[:-1])


def _is_line(data: bytes) -> bool:
    return b"\n" not in data and b"\r" not in data


def _compact(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
