"""What the journal remembers of a table: each schema version and each commit, as JSON (docs/operations.md).

The journal lies outside every table, so that it outlives the registry, foreign rewrites and orphan removal. With it and
the table the registry can be made anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final, Self

from catalog.errors import RegistryOutdated
from catalog.iceberg.rewrite import Replacement, Rewrite
from catalog.model import DataFileInfo, TranslatedRange, VersionRecord
from schema_mapping.columns.evolution import Change
from schema_mapping.columns.ledger import ColumnState, LedgerEntry, LedgerState, SchemaVersion
from schema_mapping.columns.types import read_type

FORMAT: Final = 1

MERGED_FORMAT: Final = 2
"""Archivers that know single commits only refuse it as a newer format, rather than miss what is in it."""

_ULID = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledSchema:
    """A schema version, and the whole ledger of field ids as it was when this was written."""

    version: SchemaVersion
    record: VersionRecord
    entries: tuple[LedgerEntry, ...]
    last_id: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
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
        """What `to_json` gave; RegistryOutdated where a newer archiver wrote it."""
        _check(value)
        number, fingerprint = value["version"], value["fingerprint"]
        return cls(
            version=SchemaVersion(version=number, fingerprint=fingerprint, mapping=value["mapping"]),
            record=VersionRecord(
                version=number,
                created=datetime.fromisoformat(value["created"]),
                fingerprint=fingerprint,
                changes=tuple(Change.from_json(each) for each in value["changes"]),
            ),
            entries=tuple(_entry(each) for each in value["entries"]),
            last_id=value["last_id"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledCommit:
    """A commit: the ranges it brought, or the files it rewrote. `commit_id` is None where its snapshot had expired."""

    commit_id: str | None
    ranges: tuple[TranslatedRange, ...] = ()
    rewrite: Rewrite | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; what manifests say of columns is left to them."""
        return {
            "format": FORMAT,
            "commit_id": self.commit_id,
            "ranges": [replace(one, file=one.file and _slim(one.file)).to_json() for one in self.ranges],
            "rewrite": _slim_rewrite(self.rewrite).to_json() if self.rewrite else None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """What `to_json` gave; RegistryOutdated where a newer archiver wrote it."""
        _check(value)
        return cls(
            commit_id=value["commit_id"],
            ranges=tuple(TranslatedRange.from_json(each) for each in value["ranges"]),
            rewrite=Rewrite.from_json(value["rewrite"]) if value["rewrite"] else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledStarts:
    """Where archiving of partitions was to begin, by partition, before anything of them was staged."""

    starts: Mapping[int, int]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"format": FORMAT, "starts": {str(partition): start for partition, start in sorted(self.starts.items())}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """What `to_json` gave; RegistryOutdated where a newer archiver wrote it."""
        _check(value)
        return cls(starts={int(partition): int(start) for partition, start in value["starts"].items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalContents:
    """All that a journal knows of a table: schema versions ascending, and the ranges that are in it (`current_ranges`).

    Each range comes with the commit that brought it, or its file.
    """

    schemas: tuple[JournaledSchema, ...] = ()
    starts: tuple[JournaledStarts, ...] = ()
    ranges: tuple[tuple[TranslatedRange, str | None], ...] = ()

    @property
    def ledger(self) -> LedgerState:
        """The ledger as of the newest schema version."""
        if not self.schemas:
            return LedgerState()
        newest = self.schemas[-1]
        return LedgerState(
            entries=newest.entries, versions=tuple(each.version for each in self.schemas), last_id=newest.last_id
        )


def current_ranges(
    commits: Iterable[tuple[str, JournaledCommit]],
) -> tuple[tuple[TranslatedRange, str | None], ...]:
    """The ranges as they are in the table now, files rewritten since replaced; each with the commit that did.

    Commits come with the names they have in the journal, by which the ranges are ordered; they may come in any order,
    and more than once.
    """
    found: dict[str, tuple[str, TranslatedRange, str | None]] = {}
    replaced: dict[str, tuple[str, Replacement, Rewrite]] = {}
    for name, commit in commits:
        found |= {one.file.path if one.file else one.id: (name, one, commit.commit_id) for one in commit.ranges}
        if commit.rewrite is not None:
            replaced |= {each.path: (name, each, commit.rewrite) for each in commit.rewrite.replacements}
    return tuple((one, commit_id) for _, one, commit_id in sorted(_latest(found.values(), replaced), key=_by_name))


def _latest(
    found: Iterable[tuple[str, TranslatedRange, str | None]],
    replaced: Mapping[str, tuple[str, Replacement, Rewrite]],
) -> Iterator[tuple[str, TranslatedRange, str | None]]:
    for each in found:
        latest = each
        while latest[1].file is not None and latest[1].file.path in replaced:
            name, replacement, rewrite = replaced[latest[1].file.path]
            latest = (name, *_rewritten(latest[1], replacement, rewrite))
        yield latest


def _by_name(each: tuple[str, TranslatedRange, str | None]) -> str:
    return each[0]


def journaled_schemas(
    state: LedgerState, records: Sequence[VersionRecord], *, above: int
) -> tuple[JournaledSchema, ...]:
    """What to keep of the schema versions above a number."""
    known = {each.version: each for each in records}
    return tuple(
        JournaledSchema(version=each, record=known[each.version], entries=state.entries, last_id=state.last_id)
        for each in state.versions
        if each.version > above and each.version in known
    )


def _rewritten(one: TranslatedRange, each: Replacement, rewrite: Rewrite) -> tuple[TranslatedRange, str | None]:
    made = one.succeeded_by(rewrite.commit_id, each.file, schema_version=rewrite.schema_version)
    return replace(made, id=_id_of(each.file.path) or made.id, created_ms=one.created_ms), rewrite.commit_id


def _id_of(path: str) -> str | None:
    """The ULID that a file of ours has at the end of its name."""
    stem = path.rpartition("/")[2].rpartition(".")[0]
    name = stem[-_ULID:].upper()
    return name if len(name) == _ULID and name.isalnum() else None


def _slim(file: DataFileInfo) -> DataFileInfo:
    return replace(
        file,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        split_offsets=(),
    )


def _slim_rewrite(rewrite: Rewrite) -> Rewrite:
    return replace(rewrite, replacements=tuple(replace(one, file=_slim(one.file)) for one in rewrite.replacements))


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


def _check(value: Mapping[str, Any]) -> None:
    if value.get("format") != FORMAT:
        raise RegistryOutdated(
            "the journal was written by a newer archiver: upgrade this one", found=value.get("format")
        )


def merged(entries: Mapping[str, Mapping[str, Any]]) -> bytes:
    """One object with old commits, each as it stood, under the name that it had alone (docs/adr/0028)."""
    value = {"format": MERGED_FORMAT, "commits": dict(sorted(entries.items()))}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def commits_in(name: str, value: Mapping[str, Any]) -> Iterator[tuple[str, JournaledCommit]]:
    """The commits by name in an object with this name, be it one commit's or that of many.

    RegistryOutdated where a newer archiver wrote it.
    """
    if value.get("format") == MERGED_FORMAT:
        entries = value["commits"]
    else:
        _check(value)
        entries = {name: value}
    for each, entry in entries.items():
        yield each, JournaledCommit.from_json(entry)
