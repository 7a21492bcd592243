"""A range of offsets with the files that hold its records, and how many rows the table must have.

Ranges and files are many to many: a range may be in several files, and after a rewrite one file may hold records of
several ranges. So a `StoredFile` is one range in one file. The registry has a row of `files` for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from catalog.digests import add_digests
from catalog.model import DataFileInfo, TranslatedRange, ulid_in


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """The records of one range in one file. `file` is None for a range without records.

    `rows` and `digest` count the range's records only. The table must have `expected` of these rows. The others are
    accepted to be gone: others removed the `erased` rows, or a rewrite left them out on purpose; nobody has the `lost`
    rows any more; the `retired` rows were too old to be kept. `commit_id` is None where the commit's snapshot had
    already expired when it was looked up.
    """

    id: str
    file: DataFileInfo | None
    rows: int
    digest: str | None
    expected: int
    schema_version: int
    commit_id: str | None = None
    erased: int = 0
    lost: int = 0
    retired: int = 0

    @property
    def path(self) -> str | None:
        """The file's path."""
        return self.file.path if self.file else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRange:
    """A range and the files that hold its records.

    There is always at least one `StoredFile`: a range without records has one whose `file` is None.
    """

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    leader_epoch: int
    created_ms: int
    files: tuple[StoredFile, ...]
    lost: bool = False

    @classmethod
    def of(cls, one: TranslatedRange, *, commit_id: str | None = None) -> Self:
        """Make a `StoredRange` of a range as it was translated."""
        held = [
            StoredFile(
                id=range_id,
                file=file,
                rows=file.rows if file else 0,
                digest=file.digest if file else None,
                expected=file.rows if file else 0,
                schema_version=one.schema_version,
                commit_id=commit_id,
            )
            for range_id, file in _with_ids(one)
        ]
        return cls(
            topic=one.topic,
            partition=one.partition,
            start_offset=one.start_offset,
            end_offset=one.end_offset,
            leader_epoch=one.leader_epoch,
            created_ms=one.created_ms,
            files=tuple(held),
            lost=one.lost,
        )

    @property
    def id(self) -> str:
        """The range's id: that of its first file."""
        return self.files[0].id

    @property
    def span(self) -> str:
        """The offsets as text: `[start, end)`."""
        return f"[{self.start_offset}, {self.end_offset})"

    @property
    def offsets(self) -> tuple[int, int]:
        """The first offset, and the one after the last."""
        return self.start_offset, self.end_offset

    @property
    def paths(self) -> tuple[str, ...]:
        """The files' paths."""
        return tuple(one.file.path for one in self.files if one.file is not None)

    @property
    def rows(self) -> int:
        """How many records of the range its files hold."""
        return sum(one.rows for one in self.files)

    @property
    def expected(self) -> int:
        """How many records of the range the table must have."""
        return sum(one.expected for one in self.files)

    @property
    def digest(self) -> str | None:
        """The digest of the range's records. None where the digest of one of its files is not known."""
        return add_digests(one.digest for one in self.files if one.file is not None)

    def translated(self) -> TranslatedRange:
        """The range with its whole files. A shared file also holds records of other ranges."""
        return TranslatedRange(
            id=self.id,
            topic=self.topic,
            partition=self.partition,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            schema_version=self.files[0].schema_version,
            leader_epoch=self.leader_epoch,
            files=tuple(one.file for one in self.files if one.file is not None),
            created_ms=self.created_ms,
            lost=self.lost,
        )

    def without(self, *, left: int, erased: int, lost: int) -> Self:
        """The range after some of its rows were accepted to be gone. The table must still have `left` of them."""
        first, *others = spread(self.files, left)
        first = replace(first, erased=first.erased + erased, lost=first.lost + lost)
        return replace(self, files=(first, *others))


def spread(files: Iterable[StoredFile], expected: int) -> list[StoredFile]:
    """Distribute `expected` rows over the files.

    Each file gets at most as many rows as it holds. Whatever remains goes to the first file.
    """
    found: list[StoredFile] = []
    for one in reversed(tuple(files)):
        found.append(replace(one, expected=min(one.rows, expected)))
        expected -= found[-1].expected
    found[-1] = replace(found[-1], expected=found[-1].expected + expected)
    return found[::-1]


def _with_ids(one: TranslatedRange) -> list[tuple[str, DataFileInfo | None]]:
    """The files, each with the id of its registry row.

    The first file has the id of the range, the others have the ULID in their file name.
    """
    if not one.files:
        return [(one.id, None)]
    found: list[tuple[str, DataFileInfo | None]] = [(one.id, one.files[0])]
    for number, file in enumerate(one.files[1:], 1):
        own = ulid_in(file.path)
        found.append((f"{one.id}-{number}" if own in (None, one.id) else str(own), file))
    return found
