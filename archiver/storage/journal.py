"""The journal in the object store: keeps what a lost registry is rebuilt from.

It has schema versions, commits (old ones are summed up) and where partitions begin. Objects are named after their
content, so writing one again changes nothing. The journal lies outside every table's location, so that other software
that removes a table's orphans doesn't reach it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from uuid import UUID

from archiver.config import AuditSection, Config
from archiver.errors import ConfigError, StorageDenied
from archiver.storage.journal_commits import READERS, JournalCommits, agreeing, readable
from archiver.storage.journal_sums import LEAST_SUMMED, SETTLED_SECONDS, JournalSummer, JournalSums
from archiver.storage.objects import ObjectStore
from catalog.current_ranges import current_ranges
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.settle import Settled
from catalog.journal_entries import (
    FORMAT,
    JournalContents,
    JournaledCommit,
    JournaledSchema,
    JournaledStarts,
    journaled_schemas,
)
from catalog.model import TopicRow, TranslatedRange, file_name
from catalog.ranges.holes import Acceptance
from catalog.ranges.legal_holds import Hold
from catalog.ranges.rewrite import Rewrite

if TYPE_CHECKING:
    from catalog.registry import Registry

AUDIT: Final = "audit"
"""The folder of the audit trails. No table has this name, since a table's name has a dot."""

_SCHEMA: Final = "schema-"
_COMMIT: Final = "commit-"
_STARTS: Final = "starts-"
_ACCEPTED: Final = "accepted-"
_HOLD: Final = "hold-"

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The place of all tables' journals. Without a `root` there is no journal, and nothing is kept.

    `audit` says who acts, for the audit trails that lie beside the journals.
    """

    root: str | None = None
    objects: ObjectStore = field(default_factory=ObjectStore)
    audit: AuditSection = field(default_factory=AuditSection)

    @classmethod
    def of(cls, config: Config) -> Self:
        """Make the configuration's journal.

        Its FileIO properties are the catalog's, overridden by `journal.*`.
        """
        section = config.archive
        if section.journal is None:
            return cls()
        objects = ObjectStore.of({**config.catalog, **section.journal_properties})
        return cls(root=section.journal, objects=objects, audit=config.audit)

    def named(self, table: str, uuid: UUID) -> TableJournal:
        """Return the journal of the table with this name and UUID."""
        folder = None if self.root is None else f"{self.root}/{table}/{uuid}"
        trail = None if self.root is None else f"{self.root}/{AUDIT}/{table}/{uuid}"
        return TableJournal(
            root=self.root, folder=folder, objects=self.objects, uuid=uuid, trail=trail, audit=self.audit
        )

    def knows(self, table: str) -> bool:
        """Whether there is an entry of any table that ever had this name. Raises subclasses of StorageError."""
        return self.root is not None and any(True for _ in self.objects.list(f"{self.root}/{table}/"))

    def of_table(self, table: ArchiveTable) -> TableJournal:
        """Return the journal of one table. Raises ConfigError if it would lie among the table's own files."""
        found = self.named(table.topic.table, table.uuid)
        for place in (table.location, table.data_location):
            if found.folder is not None and f"{found.folder}/".startswith(f"{place}/"):
                raise ConfigError(
                    "The journal must lie outside every table's location: the table's upkeep by others would remove it",
                    key="archive.journal",
                    journal=self.root,
                    table=table.topic.table,
                    location=place,
                )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJournal:
    """The journal of one table. Without a journal, its methods do nothing. They raise subclasses of StorageError.

    `trail` is the folder of the table's audit trail, None where there is none.
    """

    root: str | None = None
    folder: str | None = None
    objects: ObjectStore = field(default_factory=ObjectStore)
    uuid: UUID | None = None
    trail: str | None = None
    audit: AuditSection = field(default_factory=AuditSection)

    def keep_schemas(self, topic: TopicRow, registry: Registry, *, newest: int | None = None) -> None:
        """Write the schema versions that it lacks. Call this before anything is written with them.

        `newest` is the last version in the registry, if the caller knows it: then most calls read little.
        """
        if self.root is None:
            return
        kept = registry.ledger.journaled(topic, self.root)
        if newest is not None and newest <= kept:
            return
        missing = journaled_schemas(registry.ledger.load(topic), registry.ledger.history(topic), above=kept)
        for each in missing:
            self._write(f"{_SCHEMA}{each.version.version:010d}", each.to_json())
        if missing:
            registry.ledger.note_journaled(topic, self.root, missing[-1].version.version)

    def keep_starts(self, starts: Mapping[int, int]) -> None:
        """Write where partitions begin. Call this before anything of these partitions is staged."""
        if starts:
            value = JournaledStarts(starts=starts).to_json()
            name = hashlib.blake2b(json.dumps(value).encode(), digest_size=10).hexdigest()
            self._write(f"{_STARTS}{name}", value)

    def keep_commit(self, commit_id: str, ranges: Sequence[TranslatedRange]) -> None:
        """Write a commit that is in the table. Call this before the registry confirms it."""
        commit = JournaledCommit(commit_id=commit_id, ranges=tuple(ranges))
        self._write(f"{_COMMIT}{commit_id}", commit.to_json())

    def keep_rewrite(self, rewrite: Rewrite) -> None:
        """Write a rewrite that is in the table. Call this before the registry records it."""
        commit = JournaledCommit(commit_id=rewrite.commit_id, rewrite=rewrite)
        self._write(f"{_COMMIT}{rewrite.commit_id}", commit.to_json())

    def keep_accepted(self, commit_id: str, accepted: Sequence[Acceptance]) -> None:
        """Write which rows a refill accepted as lost. Call this before the registry records it."""
        value = {"format": FORMAT, "commit_id": commit_id, "accepted": [each.to_json() for each in accepted]}
        self._write(f"{_ACCEPTED}{commit_id}", value)

    def keep_hold(self, hold: Hold) -> None:
        """Write a legal hold, or its release. Call this before the registry records it."""
        kind = "placed" if hold.is_active else "released"
        self._write(f"{_HOLD}{hold.id}-{kind}", {"format": FORMAT, **hold.to_json()})

    def holds(self) -> tuple[Hold, ...]:
        """Return every hold, in the order of their ids. A release comes after what it releases."""
        if self.folder is None:
            return ()
        paths = _named(sorted(each.path for each in self.objects.list(self.folder)), _HOLD)
        found: dict[str, Hold] = {}
        for hold in map(self._reader(Hold.from_json), paths):  # "released" sorts after "placed"
            found[hold.id] = hold
        return tuple(found.values())

    def accepted(self) -> tuple[tuple[str, tuple[Acceptance, ...]], ...]:
        """Return what refills wrote, in order: their commits, and the rows accepted as lost."""
        if self.folder is None:
            return ()
        paths = _named(sorted(each.path for each in self.objects.list(self.folder)), _ACCEPTED)
        return tuple(map(self._reader(_accepted), paths))

    def keep_settled(self, settled: Settled) -> None:
        """Write commits that were found in the table later, with the ranges that the journal already knows of them.

        Where a commit's snapshot has expired, its id isn't known. Such commits are written under the id of their first
        range. An object with fewer ranges of the commit stays as it is, and gets another beside it: it may be about to
        be summed up and removed.
        """
        found: dict[str | None, list[TranslatedRange]] = {}
        for one in settled.landed:
            found.setdefault(one.commit_id, []).append(one.range)
        for commit_id, ranges in found.items():
            name = f"{_COMMIT}{min(one.id for one in ranges) if commit_id is None else commit_id}"
            commit = JournaledCommit(commit_id=commit_id, ranges=tuple(ranges))
            known = self._commit(name)
            if known is None:
                self._write(name, commit.to_json())
            elif not {one.id for one in ranges} <= {one.id for one in known.ranges}:
                self._write(f"{name}.{_hash(commit.to_json())}", commit.to_json())

    def has_starts(self) -> bool:
        """Return whether it says where a partition begins. A journal that was there from the first commit on does."""
        return self.folder is not None and bool(_named([each.path for each in self.objects.list(self.folder)], _STARTS))

    def schema(self, version: int) -> JournaledSchema | None:
        """Return one schema version. None if the journal doesn't have it."""
        path = f"{self.folder}/{_SCHEMA}{version:010d}.json"
        if self.folder is None or not self.objects.exists(path):
            return None
        return self._reader(JournaledSchema.from_json)(path)

    def read(self) -> JournalContents:
        """Return everything in the journal. Of ranges, return those that are in the table now."""
        if self.folder is None:
            return JournalContents()
        paths = sorted(each.path for each in self.objects.list(self.folder))
        with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
            schemas = tuple(pool.map(self._reader(JournaledSchema.from_json), _named(paths, _SCHEMA)))
            starts = tuple(pool.map(self._reader(JournaledStarts.from_json), _named(paths, _STARTS)))
        accepted = [each for _, those in self.accepted() for each in those]
        found = current_ranges(agreeing(self.commits.read()), accepted)
        return JournalContents(
            schemas=schemas,
            starts=starts,
            ranges=found.ranges,
            account=found.account,
            first_offsets=found.first_offsets,
            erased=found.erased,
            holds=self.holds(),
        )

    def files_in_table(self, files: Collection[str]) -> set[str]:
        """Return which of these files, by name, are in the table as far as the journal knows.

        These are the files that commits or rewrites added and that no rewrite replaced since.
        """
        named, replaced = self._added_and_replaced(files)
        return named - replaced

    def files_ever_in_table(self, files: Collection[str]) -> set[str]:
        """Return which of these files, by name, a commit or a rewrite added, as far as the journal knows."""
        return set.union(*self._added_and_replaced(files))

    def _added_and_replaced(self, files: Collection[str]) -> tuple[set[str], set[str]]:
        named: set[str] = set()
        replaced: set[str] = set()
        for commit in self._each_commit():
            brought = [file.path for one in commit.ranges for file in one.files]
            if commit.rewrite is not None:
                brought += commit.rewrite.new_paths
                gone = (*commit.rewrite.old_paths, *commit.rewrite.known_paths)
                replaced.update(name for path in gone if (name := file_name(path)) in files)
            named.update(name for path in brought if (name := file_name(path)) in files)
        return named, replaced

    def takers(self, paths: Collection[str]) -> set[str]:
        """Return the ids of the rewrites that took one of these files out of the table, as far as the journal knows."""
        rewrites = (each.rewrite for each in self._each_commit() if each.rewrite is not None)
        return {each.commit_id for each in rewrites if not {*each.old_paths}.isdisjoint(paths)}

    def commit_ids(self) -> Iterator[str]:
        """Yield the id of each commit in the journal. Those that were found after their snapshot expired have none."""
        for commit in self._each_commit():
            if commit.commit_id is not None:
                yield commit.commit_id

    def sum_up(
        self,
        *,
        least: int = LEAST_SUMMED,
        settled_seconds: float = SETTLED_SECONDS,
        dry_run: bool = False,
        is_over: Callable[[], bool] = lambda: False,
    ) -> JournalSums:
        """Sum up old commits if there are many objects (`journal_sums.py`)."""
        if self.folder is None:
            return JournalSums()
        summer = JournalSummer(
            commits=self.commits, least=least, settled_seconds=settled_seconds, dry_run=dry_run, is_over=is_over
        )
        return summer.run()

    def _commit(self, name: str) -> JournaledCommit | None:
        """The commit in the object with this name. None where there is no such object: it may be summed up by now."""
        path = f"{self.folder}/{name}.json"
        if self.folder is None or not self.objects.exists(path):
            return None
        return self._reader(JournaledCommit.from_json)(path)

    @property
    def commits(self) -> JournalCommits:
        """The objects with commits. Only where there is a journal."""
        assert self.folder is not None
        return JournalCommits(folder=self.folder, objects=self.objects)

    def _each_commit(self) -> Iterator[JournaledCommit]:
        for found in self.commits.read() if self.folder is not None else ():
            yield found.commit

    def _write(self, name: str, value: dict[str, Any]) -> None:
        if self.folder is not None:
            path, data = f"{self.folder}/{name}.json", _bytes(value)
            try:
                self.objects.write(path, data)
            except StorageDenied:  # a store that keeps objects for a time refuses to replace one by the same bytes
                if not self.objects.exists(path) or self.objects.read(path) != data:
                    raise

    def _reader(self, parse: Callable[[dict[str, Any]], Record]) -> Callable[[str], Record]:
        def read(path: str) -> Record:
            with readable(path):
                return parse(json.loads(self.objects.read(path)))

        return read


def _bytes(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _hash(value: dict[str, Any]) -> str:
    return hashlib.sha256(_bytes(value)).hexdigest()[:16]


def _accepted(value: dict[str, Any]) -> tuple[str, tuple[Acceptance, ...]]:
    return value["commit_id"], tuple(map(Acceptance.from_json, value["accepted"]))


def _named(paths: Sequence[str], prefix: str) -> list[str]:
    return [path for path in paths if path.rpartition("/")[2].startswith(prefix)]
