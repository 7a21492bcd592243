"""Find a table's orphans: the archiver's objects that nothing refers to.

Objects are listed before table, registry and journal are read. They must be old, of this archive, and below the table's
offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from archiver.errors import StorageError
from archiver.storage.file_names import DataFileName
from archiver.storage.formats import SegmentFormats
from archiver.storage.journal import Journal
from archiver.storage.objects import ListedObject, ObjectStore
from archiver.storage.segment import SegmentMetadata
from archiver.upkeep.orphans.never_landed import never_landed
from archiver.upkeep.orphans.references import References
from archiver.upkeep.orphans.report import (
    KeptFor,
    ObjectsListed,
    Orphan,
    OrphanFailed,
    OrphanKind,
    OrphanObserver,
    TopicOrphans,
)
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.attempt_names import ManifestName, is_ours
from catalog.iceberg.deletion_gate import NeverLanded, Permit, TableObjects, is_shared
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import FileState
from catalog.offset_range import OffsetRange
from catalog.ranges.spans import Cover
from catalog.registry import Registry
from catalog.registry.known_files import FileStates

MANIFEST_SECONDS: Final = 3600.0
"""Younger manifests may belong to a commit that is under way, whatever age was asked for."""
READERS: Final = 16

_KINDS: Final[Mapping[FileState, OrphanKind]] = {
    FileState.REJECTED: OrphanKind.REJECTED,
    FileState.REPLACED: OrphanKind.REPLACED,
}
_OF_SNAPSHOTS: Final = frozenset({OrphanKind.REPLACED, OrphanKind.MANIFEST})
"""Kinds that readers of older snapshots may be reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """Ages are counted up to `now_ms`."""

    registry: Registry
    catalog: TableCatalog
    journal: Journal
    formats: SegmentFormats
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    data: dict[str, tuple[ListedObject, DataFileName]] = field(default_factory=dict)
    manifests: dict[str, ListedObject] = field(default_factory=dict)
    young: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)


class OrphanSearch:
    """`references` grows during a removal. `seen` are listed names.

    `holds_all` if the configuration holds the topic: files with removed records stay.
    """

    def __init__(
        self,
        connected: Connected,
        table: ArchiveTable,
        report: TopicOrphans,
        observer: OrphanObserver,
        *,
        older_than: float,
        holds_all: bool = False,
    ) -> None:
        self._connected = connected
        self._table = table
        self._topic = table.topic
        self._report = report
        self._observer = observer
        self._older_than = older_than
        self._holds_all = holds_all
        self._lists: tuple[str, ...] = ()
        self._files = TableObjects.of(self._reloaded, table)
        self._never_landed: frozenset[str] = frozenset()
        self.references = References()
        self.seen: set[str] = set()

    def run(self) -> tuple[Orphan, ...]:
        """Find the orphans, data files first. Raises RegistryBehind, TableError and StorageError."""
        table = self._table
        self._connected.registry.ledger.check_table(self._topic, table)
        objects = ObjectStore.of_table(table.iceberg)
        listed = self._list(table, objects)
        self._lists = tuple(listed.lists)
        table = self.look()
        self._report.kept[KeptFor.AGE] += sum(name not in self.references for name in listed.young)
        data = {name: item for name, item in listed.data.items() if name not in self.references}
        registered = self._connected.registry.claims.file_states(
            self._topic, {item.path: at.ulid for item, at in data.values()}
        )
        young = [name for name in data if self.is_renewed(registered, name)]
        required = [name for name in data if registered.needs(name) and name not in young]
        retained = [name for name in data if name in registered.removed and name not in (*young, *required)]
        retained = retained if self._holds_all else []
        self._report.kept[KeptFor.AGE] += len(young)
        self._report.kept[KeptFor.REGISTRY] += len(required)
        self._report.kept[KeptFor.HOLD] += len(retained)
        for name in (*young, *required, *retained):
            del data[name]
        lacking = Cover(registered.lacking)
        proven = self._proven(table, objects, self._not_journaled(table, data), lacking)
        manifests = [item for name, item in listed.manifests.items() if name not in self.references]
        orphans = (
            *self._orphans(proven, registered),
            *(_orphan(manifest, OrphanKind.MANIFEST) for manifest in manifests),
        )
        going = tuple(item for item in orphans if not self.is_promised(registered, item))
        self._report.kept[KeptFor.PROMISE] += len(orphans) - len(going)
        return self._not_shared(table, going)

    def _not_shared(self, table: ArchiveTable, found: tuple[Orphan, ...]) -> tuple[Orphan, ...]:
        if not is_shared(table.properties):
            return found
        journal = self._connected.journal.of_table(table)
        journaled = journal.files_ever_in_table({orphan.name for orphan in found}) if found else set()
        unjournaled = [orphan for orphan in found if orphan.name not in journaled]
        self._never_landed = never_landed(table, unjournaled, self.references)
        going = tuple(orphan for orphan in unjournaled if orphan.path in self._never_landed)
        self._report.kept[KeptFor.SHARED] += len(found) - len(going)
        return going

    def look(self) -> ArchiveTable:
        """Raise TableMissing if the table was recreated."""
        return self.references.look(self._reloaded, self._lists)

    def permit(self, orphan: Orphan) -> Permit:
        return NeverLanded(self._never_landed) if orphan.path in self._never_landed else self._files

    def _reloaded(self) -> ArchiveTable:
        return self._connected.catalog.reload(self._table)

    @property
    def is_whole(self) -> bool:
        """The search doesn't count the table's rows."""
        return False

    def is_renewed(self, known: FileStates, name: str) -> bool:
        said_ms = known.renewed.get(name)
        return said_ms is not None and not self._is_old(said_ms, self._older_than)

    def is_promised(self, known: FileStates, orphan: Orphan) -> bool:
        """Even if the older snapshots expired."""
        return known.has_promise and orphan.kind in _OF_SNAPSHOTS

    def _list(self, table: ArchiveTable, objects: ObjectStore) -> _Listed:
        listed, formats = _Listed(), self._connected.formats
        for item in self._walk(objects, table.data_location):
            self.seen.add(item.name)
            name = DataFileName.parse(item.name)
            if name is None or not name.is_of(self._topic.topic) or name.extension not in formats.extensions:
                continue
            if self._is_old(max(item.modified_ms or 0, name.created_ms), self._older_than):
                listed.data[item.name] = (item, name)
            else:
                listed.young.append(item.name)
        for item in self._walk(objects, table.metadata_location):
            manifest = ManifestName.of(item.name)
            if manifest is None:
                continue
            if manifest.is_list:
                listed.lists.append(item.path)
            if not is_ours(manifest.uuid, table.uuid):
                continue
            if self._is_old(item.modified_ms, max(self._older_than, MANIFEST_SECONDS)):
                listed.manifests[item.name] = item
            else:
                listed.young.append(item.name)
        return listed

    def _walk(self, objects: ObjectStore, folder: str) -> Iterator[ListedObject]:
        for part in objects.walk(folder):
            self._report.listed += len(part)
            self._observer(ObjectsListed(topic=self._topic.topic, objects=len(part)))
            yield from part

    def _is_old(self, time_ms: int | None, seconds: float) -> bool:
        return time_ms is not None and self._connected.now_ms - time_ms >= seconds * 1_000

    def _not_journaled(
        self, table: ArchiveTable, data: Mapping[str, tuple[ListedObject, DataFileName]]
    ) -> Sequence[tuple[ListedObject, DataFileName]]:
        if not data:
            return ()
        journaled = self._connected.journal.of_table(table).files_in_table(data.keys())
        self._report.kept[KeptFor.JOURNAL] += len(journaled)
        return [item for name, item in data.items() if name not in journaled]

    def _proven(
        self,
        table: ArchiveTable,
        objects: ObjectStore,
        data: Sequence[tuple[ListedObject, DataFileName]],
        lacking: Cover,
    ) -> Iterator[tuple[ListedObject, DataFileName]]:
        """A killed upload leaves an empty file in a folder and in Azure."""

        def read(each: tuple[ListedObject, DataFileName]) -> SegmentMetadata | StorageError:
            try:
                with self._connected.formats.of_path(each[0].path).open(objects, each[0].path) as reader:
                    return reader.metadata
            except StorageError as error:
                return error

        yield from (each for each in data if not each[0].size)
        data = [each for each in data if each[0].size]
        offsets = {partition: reached.next_offset for partition, reached in table.offsets.items()}
        with ThreadPoolExecutor(READERS, thread_name_prefix="footers") as pool:
            for each, footer in zip(data, pool.map(read, data), strict=True):
                if isinstance(footer, StorageError):
                    self._report.failures[each[0].path] = footer
                    self._observer(OrphanFailed(topic=self._topic.topic, path=each[0].path, error=footer))
                    continue
                reason = self._doubt(each[1], footer, offsets, lacking)
                if reason is None:
                    yield each
                else:
                    self._report.kept[reason] += 1

    def _doubt(
        self, name: DataFileName, footer: SegmentMetadata, offsets: Mapping[int, int], lacking: Cover
    ) -> KeptFor | None:
        origin = footer.origin
        if origin is None:
            if name.partition is not None or footer.format_version is None:
                return KeptFor.FOOTER
            return KeptFor.REGISTRY if lacking.ranges else None  # a rewritten file may be of any range
        if (origin.cluster_id, origin.topic) != (self._topic.cluster_id, self._topic.topic):
            return KeptFor.FOOTER
        if lacking.touches(OffsetRange.half_open(origin.partition, origin.start_offset, origin.end_offset)):
            return KeptFor.REGISTRY
        return None if origin.end_offset <= offsets.get(origin.partition, 0) else KeptFor.OFFSETS

    def _orphans(self, found: Iterable[tuple[ListedObject, DataFileName]], known: FileStates) -> Iterator[Orphan]:
        for item, name in found:
            state = known.states.get(item.name)
            kind = OrphanKind.UNKNOWN if state is None else _KINDS[state]
            yield _orphan(item, kind, ulid=name.ulid)


def _orphan(each: ListedObject, kind: OrphanKind, *, ulid: str | None = None) -> Orphan:
    return Orphan(
        path=each.path, name=each.name, size=each.size, modified_ms=each.modified_ms or 0, kind=kind, ulid=ulid
    )
