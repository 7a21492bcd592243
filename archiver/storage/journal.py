"""The journal, from which a lost registry is rebuilt (docs/stored-files.md).

Objects are named by content, so repeated writes change nothing.
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
from archiver.storage.journal_memory import JournalMemory
from archiver.storage.journal_sums import SETTLED_SECONDS, JournalSummer, JournalSums, SumLimits
from archiver.storage.metadata_folder import MetadataFolder
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
from catalog.ranges.holes import Acceptance, acceptances_from_json, acceptances_to_json
from catalog.ranges.legal_holds import Hold
from catalog.ranges.rewrite import Rewrite

if TYPE_CHECKING:
    from catalog.registry import Registry

AUDIT: Final = "audit"
"""The folder of the audit trails. No table has this name: a table's name has a dot."""

METADATA: Final = "metadata"
"""The folder of metadata of records."""

_SCHEMA: Final = "schema-"
_COMMIT: Final = "commit-"
_STARTS: Final = "starts-"
_ACCEPTED: Final = "accepted-"
_HOLD: Final = "hold-"

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """Without `root`, nothing is kept. `audit` names the actor of audit trails."""

    root: str | None = None
    objects: ObjectStore = field(default_factory=ObjectStore)
    audit: AuditSection = field(default_factory=AuditSection)
    memory: JournalMemory = field(default_factory=JournalMemory, compare=False)

    @classmethod
    def of(cls, config: Config, memory: JournalMemory | None = None) -> Self:
        """FileIO properties are the catalog's, overridden by `journal.*`."""
        section, memory = config.archive, memory or JournalMemory()
        if section.journal is None:
            return cls(memory=memory)
        objects = ObjectStore.of({**config.catalog, **section.journal_properties})
        return cls(root=section.journal, objects=objects, audit=config.audit, memory=memory)

    def named(self, table: str, uuid: UUID) -> TableJournal:
        folder = None if self.root is None else f"{self.root}/{table}/{uuid}"
        trail = None if self.root is None else f"{self.root}/{AUDIT}/{table}/{uuid}"
        return TableJournal(
            root=self.root,
            folder=folder,
            objects=self.objects,
            uuid=uuid,
            trail=trail,
            audit=self.audit,
            memory=self.memory,
        )

    def knows(self, table: str) -> bool:
        """Whether any table that ever had this name has an entry. Raises subclasses of StorageError."""
        return self.root is not None and any(True for _ in self.objects.list(f"{self.root}/{table}/"))

    def of_table(self, table: ArchiveTable) -> TableJournal:
        """Raise ConfigError if the journal would lie among the table's files."""
        journal = self.named(table.topic.table, table.uuid)
        for location in (table.location, table.data_location):
            if journal.folder is not None and f"{journal.folder}/".startswith(f"{location}/"):
                raise ConfigError(
                    "The journal must lie outside every table's location: the table's upkeep by others would remove it",
                    key="archive.journal",
                    journal=self.root,
                    table=table.topic.table,
                    location=location,
                )
        return journal


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJournal:
    """Methods do nothing without a folder, and raise subclasses of StorageError.

    `trail` is the audit trail's folder, if any.
    """

    root: str | None = None
    folder: str | None = None
    objects: ObjectStore = field(default_factory=ObjectStore)
    uuid: UUID | None = None
    trail: str | None = None
    audit: AuditSection = field(default_factory=AuditSection)
    memory: JournalMemory = field(default_factory=JournalMemory, compare=False)

    @property
    def metadata(self) -> MetadataFolder | None:
        if self.root is None or self.folder is None:
            return None
        below = self.folder.removeprefix(f"{self.root}/")
        return MetadataFolder(path=f"{self.root}/{METADATA}/{below}", objects=self.objects)

    def keep_schemas(self, topic: TopicRow, registry: Registry, *, newest: int | None = None) -> None:
        """Write missing versions, before rows use them.

        `newest`, the registry's last version, saves reads.
        """
        if self.root is None:
            return
        kept = registry.ledger.journaled(topic, self.root)
        if newest is not None and newest <= kept:
            return
        missing = journaled_schemas(registry.ledger.load(topic), registry.ledger.history(topic), above=kept)
        for version in missing:
            self._write(f"{_SCHEMA}{version.version.version:010d}", version.to_json())
        if missing:
            registry.ledger.note_journaled(topic, self.root, missing[-1].version.version)

    def keep_starts(self, starts: Mapping[int, int]) -> None:
        """Call it before any row is staged."""
        if starts:
            value = JournaledStarts(starts=starts).to_json()
            name = hashlib.blake2b(json.dumps(value).encode(), digest_size=10).hexdigest()
            self._write(f"{_STARTS}{name}", value)

    def keep_commit(self, commit_id: str, ranges: Sequence[TranslatedRange]) -> None:
        """Call it after the table's commit, before the registry confirms it."""
        commit = JournaledCommit(commit_id=commit_id, ranges=tuple(ranges))
        self._write(f"{_COMMIT}{commit_id}", commit.to_json())

    def keep_rewrite(self, rewrite: Rewrite) -> None:
        """Call it after the table's commit, before the registry records it."""
        commit = JournaledCommit(commit_id=rewrite.commit_id, rewrite=rewrite)
        self._write(f"{_COMMIT}{rewrite.commit_id}", commit.to_json())

    def keep_accepted(self, commit_id: str, accepted: Sequence[Acceptance]) -> None:
        """Call it before the registry records them."""
        value = {"format": FORMAT, "commit_id": commit_id, **acceptances_to_json(accepted)}
        self._write(f"{_ACCEPTED}{commit_id}", value)

    def keep_hold(self, hold: Hold) -> None:
        """Call it before the registry records it."""
        kind = "placed" if hold.is_active else "released"
        self._write(f"{_HOLD}{hold.id}-{kind}", {"format": FORMAT, **hold.to_json()})

    def holds(self) -> tuple[Hold, ...]:
        """By id; a release follows its hold."""
        if self.folder is None:
            return ()
        paths = _named(sorted(listed.path for listed in self.objects.list(self.folder)), _HOLD)
        holds: dict[str, Hold] = {}
        for hold in map(self._reader(Hold.from_json), paths):  # "released" sorts after "placed"
            holds[hold.id] = hold
        return tuple(holds.values())

    def accepted(self) -> tuple[tuple[str, tuple[Acceptance, ...]], ...]:
        if self.folder is None:
            return ()
        paths = _named(sorted(listed.path for listed in self.objects.list(self.folder)), _ACCEPTED)
        return tuple(map(self._reader(_accepted), paths))

    def keep_settled(self, settled: Settled) -> None:
        """A commit without an id (its snapshot has expired) gets its first range's.

        An object without ranges stays: it may be about to be summed up.
        """
        by_commit: dict[str | None, list[TranslatedRange]] = {}
        for landed in settled.landed:
            by_commit.setdefault(landed.commit_id, []).append(landed.range)
        for commit_id, ranges in by_commit.items():
            name = f"{_COMMIT}{min(item.id for item in ranges) if commit_id is None else commit_id}"
            commit = JournaledCommit(commit_id=commit_id, ranges=tuple(ranges))
            written = self._commit(name)
            if written is None:
                self._write(name, commit.to_json())
            elif not {item.id for item in ranges} <= {item.id for item in written.ranges}:
                self._write(f"{name}.{_hash(commit.to_json())}", commit.to_json())

    def has_starts(self) -> bool:
        """False for a journal begun after the first commit."""
        return self.folder is not None and bool(
            _named([listed.path for listed in self.objects.list(self.folder)], _STARTS)
        )

    def schema(self, version: int) -> JournaledSchema | None:
        path = f"{self.folder}/{_SCHEMA}{version:010d}.json"
        if self.folder is None or not self.objects.exists(path):
            return None
        return self._reader(JournaledSchema.from_json)(path)

    def read(self, *, keeps_replaced: bool = False) -> JournalContents:
        """`keeps_replaced` adds files that left the table."""
        if self.folder is None:
            return JournalContents()
        paths = sorted(listed.path for listed in self.objects.list(self.folder))
        with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
            schemas = tuple(pool.map(self._reader(JournaledSchema.from_json), _named(paths, _SCHEMA)))
            starts = tuple(pool.map(self._reader(JournaledStarts.from_json), _named(paths, _STARTS)))
        accepted = [acceptance for _, acceptances in self.accepted() for acceptance in acceptances]
        ranges = current_ranges(agreeing(self.commits.read()), accepted, keeps_replaced=keeps_replaced)
        return JournalContents(
            schemas=schemas,
            starts=starts,
            ranges=ranges.ranges,
            account=ranges.account,
            first_offsets=ranges.first_offsets,
            erased=ranges.erased,
            replaced=ranges.replaced,
            holds=self.holds(),
        )

    def files_in_table(self, files: Collection[str]) -> set[str]:
        """Return files that were added and not replaced since."""
        named, replaced = self._added_and_replaced(files)
        return named - replaced

    def files_ever_in_table(self, files: Collection[str]) -> set[str]:
        """Added by any commit or rewrite."""
        return set.union(*self._added_and_replaced(files))

    def _added_and_replaced(self, files: Collection[str]) -> tuple[set[str], set[str]]:
        named: set[str] = set()
        replaced: set[str] = set()
        for commit in self._each_commit():
            brought = [file.path for item in commit.ranges for file in item.files]
            if commit.rewrite is not None:
                brought += commit.rewrite.new_paths
                gone = (*commit.rewrite.old_paths, *commit.rewrite.known_paths)
                replaced.update(name for path in gone if (name := file_name(path)) in files)
            named.update(name for path in brought if (name := file_name(path)) in files)
        return named, replaced

    def takers(self, paths: Collection[str]) -> set[str]:
        rewrites = (entry.rewrite for entry in self._each_commit() if entry.rewrite is not None)
        return {rewrite.commit_id for rewrite in rewrites if not {*rewrite.old_paths}.isdisjoint(paths)}

    def commit_ids(self) -> Iterator[str]:
        """Commits found after their snapshot expired have no id."""
        for commit in self._each_commit():
            if commit.commit_id is not None:
                yield commit.commit_id

    def sum_up(
        self,
        *,
        limits: SumLimits | None = None,
        settled_seconds: float = SETTLED_SECONDS,
        dry_run: bool = False,
        is_over: Callable[[], bool] = lambda: False,
    ) -> JournalSums:
        if self.folder is None:
            return JournalSums()
        summer = JournalSummer(
            commits=self.commits,
            memory=self.memory,
            limits=limits or SumLimits(),
            settled_seconds=settled_seconds,
            dry_run=dry_run,
            is_over=is_over,
        )
        return summer.run()

    def _commit(self, name: str) -> JournaledCommit | None:
        path = f"{self.folder}/{name}.json"
        if self.folder is None or not self.objects.exists(path):
            return None
        return self._reader(JournaledCommit.from_json)(path)

    @property
    def commits(self) -> JournalCommits:
        assert self.folder is not None
        return JournalCommits(folder=self.folder, objects=self.objects)

    def _each_commit(self) -> Iterator[JournaledCommit]:
        for entry in self.commits.read() if self.folder is not None else ():
            yield entry.commit

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
    return value["commit_id"], acceptances_from_json(value)


def _named(paths: Sequence[str], prefix: str) -> list[str]:
    return [path for path in paths if path.rpartition("/")[2].startswith(prefix)]
