"""Journal entries as JSON: schema versions, commits and first offsets (docs/stored-files.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Self

from catalog.account.interval import Interval
from catalog.errors import RegistryOutdated
from catalog.model import DataFileInfo, TranslatedRange, VersionRecord
from catalog.ranges.legal_holds import Hold
from catalog.ranges.replaced_files import ReplacedFile
from catalog.ranges.rewrite import Rewrite
from catalog.ranges.stored_ranges import StoredRange
from schema_mapping.columns.evolution import Change
from schema_mapping.columns.ledger import ColumnState, LedgerEntry, LedgerState, SchemaVersion
from schema_mapping.columns.types import read_type

FORMAT: Final = 1

MERGED_FORMAT: Final = 2
"""The format of several commits in one object.

An archiver that knows only objects of one commit refuses it as a newer format, so it never misses commits.
"""

REGROUPED_FORMAT: Final = 3
"""The format of a commit with a range in several files, or with a rewrite of several files.

Older archivers refuse it.
"""


RETIRED_FORMAT: Final = 4
"""The format of a commit that says where partitions begin, which offsets it erased, or which files others rewrote.

An archiver that doesn't know these would take retired and erased records for missing ones, so it refuses it.
"""

COMMIT_FORMATS: Final = (FORMAT, REGROUPED_FORMAT, RETIRED_FORMAT)
"""The formats of an object with one commit."""

SUMMARY_FORMAT: Final = 5
"""The format of a summary (`catalog/journal_summaries.py`). Older archivers refuse it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledSchema:
    """`entries` is the whole ledger of field ids at that time."""

    version: SchemaVersion
    record: VersionRecord
    entries: tuple[LedgerEntry, ...]
    last_id: int

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": self.version.version,
            "fingerprint": self.version.fingerprint,
            "mapping": self.version.mapping,
            "created": self.record.created.isoformat(),
            "changes": [change.to_json() for change in self.record.changes],
            "entries": [_entry_json(entry) for entry in self.entries],
            "last_id": self.last_id,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Raises RegistryOutdated if a newer archiver wrote it."""
        check_format(value)
        number, fingerprint = value["version"], value["fingerprint"]
        return cls(
            version=SchemaVersion(version=number, fingerprint=fingerprint, mapping=value["mapping"]),
            record=VersionRecord(
                version=number,
                created=datetime.fromisoformat(value["created"]),
                fingerprint=fingerprint,
                changes=tuple(Change.from_json(item) for item in value["changes"]),
            ),
            entries=tuple(_entry(item) for item in value["entries"]),
            last_id=value["last_id"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledCommit:
    """`commit_id` is None if the snapshot had expired."""

    commit_id: str | None
    ranges: tuple[TranslatedRange, ...] = ()
    rewrite: Rewrite | None = None

    def joined(self, other: Self) -> Self:
        """Both may be partial."""
        ranges = {range_.id: range_ for range_ in (*other.ranges, *self.ranges)}
        return replace(self, ranges=tuple(ranges.values()), rewrite=self.rewrite or other.rewrite)

    def contradicts(self, other: Self) -> str | None:
        ranges = {range_.id: range_ for range_ in self.ranges}
        for range_ in other.ranges:
            if range_.id in ranges and _differ(ranges[range_.id], range_):
                return f"the offsets {range_.span} of partition {range_.partition}"
        if self.rewrite is not None and other.rewrite is not None and _said(self.rewrite) != _said(other.rewrite):
            return f"a rewrite of {len(other.rewrite.old_paths)} files"
        return None

    def to_json(self) -> dict[str, Any]:
        """Without column statistics."""
        return {
            "format": self._format,
            "commit_id": self.commit_id,
            "ranges": [replace(range_, files=tuple(map(_slim, range_.files))).to_json() for range_ in self.ranges],
            "rewrite": _slim_rewrite(self.rewrite).to_json() if self.rewrite else None,
        }

    @property
    def _format(self) -> int:
        if self.rewrite is not None and not self.rewrite.is_of_known_files:
            return RETIRED_FORMAT
        is_plain = all(len(range_.files) <= 1 for range_ in self.ranges) and (
            self.rewrite is None or self.rewrite.is_plain
        )
        return FORMAT if is_plain else REGROUPED_FORMAT

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Raises RegistryOutdated if a newer archiver wrote it."""
        check_format(value, *COMMIT_FORMATS)
        return cls(
            commit_id=value["commit_id"],
            ranges=tuple(TranslatedRange.from_json(range_) for range_ in value["ranges"]),
            rewrite=Rewrite.from_json(value["rewrite"]) if value["rewrite"] else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledStarts:
    """The first offsets of partitions, decided before staging."""

    starts: Mapping[int, int]

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "starts": {str(partition): start for partition, start in sorted(self.starts.items())}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Raises RegistryOutdated if a newer archiver wrote it."""
        check_format(value)
        return cls(starts={int(partition): int(start) for partition, start in value["starts"].items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalContents:
    """`ranges` are the table's current ones, `erased` spans with their commit, `holds` all ever placed.

    Schema versions ascend. `replaced` files left the table.
    """

    schemas: tuple[JournaledSchema, ...] = ()
    starts: tuple[JournaledStarts, ...] = ()
    ranges: tuple[StoredRange, ...] = ()
    account: tuple[Interval, ...] = ()
    first_offsets: Mapping[int, int] = field(default_factory=dict)
    erased: tuple[tuple[str, tuple[int, int, int]], ...] = ()
    replaced: tuple[ReplacedFile, ...] = ()
    holds: tuple[Hold, ...] = ()

    @property
    def ledger(self) -> LedgerState:
        if not self.schemas:
            return LedgerState()
        newest = self.schemas[-1]
        return LedgerState(
            entries=newest.entries, versions=tuple(schema.version for schema in self.schemas), last_id=newest.last_id
        )


def journaled_schemas(
    state: LedgerState, records: Sequence[VersionRecord], *, above: int
) -> tuple[JournaledSchema, ...]:
    registered = {record.version: record for record in records}
    return tuple(
        JournaledSchema(
            version=version, record=registered[version.version], entries=state.entries, last_id=state.last_id
        )
        for version in state.versions
        if version.version > above and version.version in registered
    )


def _differ(one: TranslatedRange, other: TranslatedRange) -> bool:
    digests = {one.digest, other.digest} - {None}
    return len(digests) > 1 or _place(one) != _place(other)


def _place(one: TranslatedRange) -> tuple[object, ...]:
    files = sorted((file.path, file.rows) for file in one.files)
    return one.partition, one.start_offset, one.end_offset, one.lost, files


def _said(rewrite: Rewrite) -> list[object]:
    groups = [
        (
            sorted(group.known_paths),
            sorted((file.file.path, file.file.rows, file.file.digest or "") for file in group.files),
            sorted(map(repr, group.all_spans)),
        )
        for group in rewrite.groups
    ]
    return [sorted(groups), sorted(rewrite.first_offsets.items()), sorted(rewrite.erased)]


def _slim(file: DataFileInfo) -> DataFileInfo:
    """Without values of records: nothing is ever erased from the journal."""
    return replace(
        file,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        split_offsets=(),
        partition=file.partition if file.partition.is_time_alone else replace(file.partition, values=None),
    )


def _slim_rewrite(rewrite: Rewrite) -> Rewrite:
    return replace(
        rewrite,
        groups=tuple(
            replace(group, files=tuple(replace(file, file=_slim(file.file)) for file in group.files))
            for group in rewrite.groups
        ),
    )


def _entry_json(entry: LedgerEntry) -> dict[str, Any]:
    return {**asdict(entry), "path": list(entry.path), "type": str(entry.type), "state": entry.state.value}


def _entry(value: Mapping[str, Any]) -> LedgerEntry:
    return LedgerEntry(
        **{
            **value,
            "path": tuple(value["path"]),
            "type": read_type(value["type"]),
            "state": ColumnState(value["state"]),
        }
    )


def check_format(value: Mapping[str, Any], *known: int) -> None:
    """Raises RegistryOutdated unless the format is one of `known`, by default the first."""
    if value.get("format") not in (known or (FORMAT,)):
        raise RegistryOutdated(
            "the journal was written by a newer archiver: upgrade this one", found=value.get("format")
        )
