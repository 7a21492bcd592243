"""A range with its files and expected rows.

Ranges and files are many to many: a `StoredFile` is one range in one file, and a row of `files`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from catalog.digests import add_digests
from catalog.model import DataFileInfo, TranslatedRange, ulid_in


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """The records of one range in one file, None without records.

    `erased` rows were removed by other engines or on purpose, `lost` rows are nowhere, `retired` ones too old.
    `commit_id` is None if the snapshot had expired. `rows` and `digest` are of this range only.
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
        return self.file.path if self.file else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRange:
    """There is at least one `StoredFile`, whose `file` is None without records."""

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
        files = [
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
            files=tuple(files),
            lost=one.lost,
        )

    @property
    def id(self) -> str:
        return self.files[0].id

    @property
    def span(self) -> str:
        return f"[{self.start_offset}, {self.end_offset})"

    @property
    def offsets(self) -> tuple[int, int]:
        return self.start_offset, self.end_offset

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.file.path for file in self.files if file.file is not None)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def expected(self) -> int:
        return sum(file.expected for file in self.files)

    @property
    def digest(self) -> str | None:
        return add_digests(file.digest for file in self.files if file.file is not None)

    def translated(self) -> TranslatedRange:
        """With whole files, which other ranges may share."""
        return TranslatedRange(
            id=self.id,
            topic=self.topic,
            partition=self.partition,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            schema_version=self.files[0].schema_version,
            leader_epoch=self.leader_epoch,
            files=tuple(file.file for file in self.files if file.file is not None),
            created_ms=self.created_ms,
            lost=self.lost,
        )

    def without(self, *, left: int, erased: int, lost: int) -> Self:
        first, *rest = spread(self.files, left)
        first = replace(first, erased=first.erased + erased, lost=first.lost + lost)
        return replace(self, files=(first, *rest))


def spread(files: Iterable[StoredFile], expected: int) -> list[StoredFile]:
    """Distribute `expected` rows over the files, up to the rows of each; the first gets the rest."""
    result: list[StoredFile] = []
    for file in reversed(tuple(files)):
        result.append(replace(file, expected=min(file.rows, expected)))
        expected -= result[-1].expected
    result[-1] = replace(result[-1], expected=result[-1].expected + expected)
    return result[::-1]


def _with_ids(one: TranslatedRange) -> list[tuple[str, DataFileInfo | None]]:
    """The first file has the range's id, the remaining ones their ULIDs."""
    if not one.files:
        return [(one.id, None)]
    pairs: list[tuple[str, DataFileInfo | None]] = [(one.id, one.files[0])]
    for number, file in enumerate(one.files[1:], 1):
        own = ulid_in(file.path)
        pairs.append((f"{one.id}-{number}" if own in (None, one.id) else str(own), file))
    return pairs
