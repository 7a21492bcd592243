"""Delete a removal's old files once nothing refers to them.

Deleted like orphans: under the topic's row lock, after another check. No single clock decides about age.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias

from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot

from archiver.commit.check_rows import check_rows, renew_check
from archiver.commit.known_rows import later_than
from archiver.errors import ConfigError, ObjectMissing
from archiver.fault_points import RemovalPoint, pass_point
from archiver.observer import ignore
from archiver.rewrite.table_work import TableWork
from archiver.storage.file_names import DataFileName
from archiver.storage.objects import ObjectStore
from archiver.upkeep.orphans.noted import noted_deletion
from archiver.upkeep.orphans.references import References
from archiver.upkeep.orphans.removal import remove_orphans
from archiver.upkeep.orphans.report import Orphan, OrphanKind, TopicOrphans
from archiver.upkeep.removal.snapshots import HoldingSnapshots, holding_snapshots, stale_files
from catalog.errors import CatalogUnreachable, FilesShared
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.attempt_names import ManifestName
from catalog.iceberg.deletion_gate import Permit, TableObjects, refuse_shared
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import file_name
from catalog.registry import Registry
from catalog.registry.known_files import FileStates
from schema_mapping.errors import ContextError

EXPIRY_TRIES: Final = 5
"""How often snapshots are looked at again because others commit meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """`shared` if the owner forbids deleting files, `stopped` if time ran out.

    `snapshots` needed some of the `left` files.
    """

    deleted: int = 0
    size_bytes: int = 0
    left: tuple[str, ...] = ()
    held: int = 0
    shared: bool = False
    stopped: bool = False
    snapshots: HoldingSnapshots = field(default_factory=HoldingSnapshots)
    failures: Mapping[str, ContextError] = field(default_factory=dict)


ExpiresOwned: TypeAlias = Callable[[Sequence[Snapshot], Mapping[str, str]], bool]
"""Whether snapshots may expire that the owner keeps by these properties."""


def never_owned(_snapshots: Sequence[Snapshot], _settings: Mapping[str, str]) -> bool:
    return False


def never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeTerms:
    """Deletes unneeded files, and snapshots older than `grace_seconds` that only keep removed files.

    `with_others` includes unnamed snapshots of other engines. `holds_all` if the configuration holds the topic.
    `of_erasures` deletes only files with erased records; otherwise the grace of unfinished erasures applies too.
    """

    grace_seconds: float
    with_others: bool = False
    holds_all: bool = False
    of_erasures: bool = False
    expires_owned: ExpiresOwned = never_owned
    is_over: Callable[[], bool] = never


def purge(table: ArchiveTable, work: TableWork, terms: PurgeTerms) -> Purged:
    """Expire snapshots and delete files, unless the owner forbids it. Audited.

    Raises TableError, RegistryError and StorageError.
    """
    registry, catalog = work.registry, work.catalog
    if terms.of_erasures:
        _note_stale(table, registry, catalog)
        removed = registry.erasures.files(table.topic)
    else:
        removed = registry.retention.removed_files(table.topic)
        promised = registry.erasures.promised_seconds(table.topic)
        if promised > terms.grace_seconds:  # the erasure deletes its files itself
            terms = replace(terms, grace_seconds=promised)
            erased = registry.erasures.files(table.topic)
            removed = {path: commit for path, commit in removed.items() if path not in erased}
    if not removed or terms.holds_all:
        return Purged(left=tuple(removed), held=len(removed) if terms.holds_all else 0)
    names = {file_name(path) for path in removed}
    if terms.is_over():
        return Purged(left=tuple(removed), stopped=True)
    try:
        table, snapshots, manifests = _expired(table, names, work, terms)
    except FilesShared:
        return Purged(left=tuple(removed), shared=True)
    if terms.of_erasures:
        _note_manifests(table, registry, manifests)
    pass_point(RemovalPoint.SNAPSHOTS_EXPIRED)
    search = RemovedFiles(table, catalog)
    looked = search.look()
    files = {path: _registry_id(path) for path in removed}
    registered = registry.claims.file_states(table.topic, files)
    if registered.missed:  # only for these it matters: it may open files of other engines, which may be unreadable
        search.check_rows(looked, registry)
    free = [path for path in files if file_name(path) not in search.references]
    going = [path for path in free if not registered.needs(file_name(path), is_whole=search.is_whole)]
    report = TopicOrphans(topic=table.topic.topic, table=table.topic.table)
    existing, gone = _orphans(table, going, files)
    report.orphans = (*existing, *gone)
    sizes = {orphan.path: orphan.size for orphan in report.orphans}
    with noted_deletion(work.trail(table.topic), "purge", report, gone=gone):
        remove_orphans(search, table.topic, report, registry=registry, observer=ignore, is_over=terms.is_over)
    deleted = {item.path for item in report.deleted}
    return Purged(
        deleted=len(deleted),
        size_bytes=sum(sizes[path] for path in deleted),
        left=(*(path for path in removed if path not in deleted), *manifests),
        held=sum(1 for path in free if file_name(path) in registered.held),
        shared=bool(report.shared),
        snapshots=snapshots,
        stopped=terms.is_over() and len(deleted) + len(report.needed_again) + len(report.shared) < len(going),
        failures=report.failures,
    )


def _note_stale(table: ArchiveTable, registry: Registry, catalog: TableCatalog) -> None:
    """Call it before older snapshots expire."""
    erased = registry.erasures.offsets(table.topic)
    stale = stale_files(catalog.reload(table), erased) if erased else ()
    registry.erasures.note_files(
        table.topic, [(file.path, file.partition, file.start_offset, file.end_offset) for file in stale]
    )


def _note_manifests(table: ArchiveTable, registry: Registry, manifests: Sequence[str]) -> None:
    """The next run deletes them and ends the erasure.

    They have bounds of erased values; any erased offset represents them.
    """
    for partition, spans in registry.erasures.offsets(table.topic).items() if manifests else ():
        (start, end), *_ = spans
        registry.erasures.note_files(table.topic, [(path, partition, start, end) for path in manifests])
        return


def _registry_id(path: str) -> str:
    name = DataFileName.parse(file_name(path))
    return file_name(path) if name is None else name.ulid


def _expired(
    table: ArchiveTable, names: set[str], work: TableWork, terms: PurgeTerms
) -> tuple[ArchiveTable, HoldingSnapshots, tuple[str, ...]]:
    """Return the table, the snapshots before, and undeleted manifests.

    Checks new tags right before: catalogs drop a tag with its snapshot. Raises FilesShared if the owner forbids it.
    """
    registry, catalog = work.registry, work.catalog
    manifests: tuple[str, ...] = ()
    for left in reversed(range(EXPIRY_TRIES)):
        table = catalog.reload(table)
        refuse_shared(table.properties, table.topic.table)
        # Without a grace everything may go that was there a moment ago, by the clock that has just made snapshots.
        now = confirmed_time(registry) if terms.grace_seconds else time.time()
        older_than_ms = int((now - terms.grace_seconds) * 1_000) + 1
        snapshots = holding_snapshots(
            table, names, older_than_ms=older_than_ms, with_others=terms.with_others, now_ms=int(now * 1_000)
        )
        if snapshots.owned and terms.expires_owned(snapshots.owned, snapshots.settings):
            snapshots = replace(snapshots, going=(*snapshots.going, *snapshots.owned), owned=(), settings={})
        if not snapshots.going:
            break
        if _named(catalog.reload(table)) != _named(table):
            if left:
                continue
            raise CatalogUnreachable(
                "others set tags or branches while snapshots were looked at; look again", table=table.topic.table
            )
        renew_check(table.topic, table, registry, partial(catalog.reload, table))
        try:
            manifests = catalog.expire(table, snapshots.going)
        except CatalogUnreachable:
            if not left:
                raise
        else:
            break
    return table, snapshots, manifests


def _named(table: ArchiveTable) -> dict[str, int]:
    refs = table.iceberg.metadata.refs
    return {name: ref.snapshot_id for name, ref in refs.items() if name != MAIN_BRANCH}


def _orphans(table: ArchiveTable, paths: list[str], files: Mapping[str, str]) -> tuple[list[Orphan], list[Orphan]]:
    objects = ObjectStore.of_table(table.iceberg)
    existing: list[Orphan] = []
    gone: list[Orphan] = []
    for path in paths:
        size, orphans = 0, gone
        with suppress(ObjectMissing):
            size, orphans = objects.size(path), existing
        orphans.append(
            Orphan(
                path=path,
                name=file_name(path),
                size=size,
                modified_ms=0,
                kind=OrphanKind.REPLACED,
                ulid=files[path],
            )
        )
    return existing, gone


class RemovedFiles:
    def __init__(self, table: ArchiveTable, catalog: TableCatalog) -> None:
        self._table = table
        self._catalog = catalog
        self._permit = TableObjects.of(partial(catalog.reload, table), table)
        self._seen: int | None = None
        self._whole: tuple[int | None, ...] = ()
        """The snapshot in which no row was missing or altered."""
        self.references = References(is_of_one_table=True)

    def check_rows(self, table: ArchiveTable, registry: Registry) -> None:
        """`table` is from `look`. Not under the topic's lock: the result is recorded."""
        checked = check_rows(table.topic, table, registry, partial(self._catalog.reload, table))
        is_of_table = later_than(checked, table) is not None
        is_whole = not (checked.holes or checked.altered)
        self._whole = (table.snapshot_id if is_of_table else checked.snapshot_id,) if is_whole else ()

    @property
    def is_whole(self) -> bool:
        return self._seen in self._whole

    def look(self) -> ArchiveTable:
        objects = ObjectStore.of_table(self._table.iceberg)
        lists = [
            item.path
            for part in objects.walk(self._table.metadata_location)
            for item in part
            if (name := ManifestName.of(item.name)) is not None and name.is_list
        ]
        table = self.references.look(partial(self._catalog.reload, self._table), lists)
        self._seen = table.snapshot_id
        return table

    def is_renewed(self, known: FileStates, name: str) -> bool:  # noqa: ARG002 - the protocol's
        """No run claims a file that was in the table."""
        return False

    def is_promised(self, known: FileStates, orphan: Orphan) -> bool:  # noqa: ARG002 - the protocol's
        """Promises were checked with the snapshots."""
        return False

    def permit(self, orphan: Orphan) -> Permit:  # noqa: ARG002 - the protocol's
        return self._permit


MOST_APART_SECONDS: Final = 3_600.0
"""How far this machine's clock may be from Postgres'."""


def confirmed_time(registry: Registry) -> float:
    """Return seconds since 1970. Raises ConfigError if this clock differs from Postgres' by over an hour.

    A clock ahead would remove records too early and delete their files in the same run.
    """
    local, remote = time.time(), registry.retention.now()
    if abs(local - remote) > MOST_APART_SECONDS:
        raise ConfigError(
            "the clocks of this machine and of Postgres' differ by more than an hour; nothing was removed. Set"
            " the wrong one right",
            difference_s=round(local - remote),
        )
    return min(local, remote)
