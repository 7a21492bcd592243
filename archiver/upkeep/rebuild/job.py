"""`archiver registry rebuild`: restore the registry from tables, journal and footers (docs/stored-files.md).

Existing rows stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyiceberg.schema import Schema, index_by_id
from pyiceberg.types import StructType

from archiver.archive.deletes import DeleteFiles
from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import TopicStorage
from archiver.archive.table_files import ManifestReader, TableFile
from archiver.audit.acts import Noted
from archiver.audit.trail import AuditTrail
from archiver.commit.file_values import restore_values
from archiver.commit.footers import read_footers, without_journaled
from archiver.commit.journal_completion import complete_journal
from archiver.commit.left_files import files_in_store
from archiver.commit.table_ranges import table_ranges
from archiver.config import Config, TopicConfig
from archiver.errors import ConfigError, NotArchived, TopicBusy, UpkeepError
from archiver.schemas import mapping_options
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.storage.formats import FORMATS
from archiver.storage.journal import Journal, TableJournal
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentMetadata
from archiver.upkeep.rebuild.unnamed_rows import UnnamedRows, VersionMappings
from archiver.upkeep.rebuild.unreferenced import Ends, LeftFile, continuing_ranges
from catalog.account.interval import Interval
from catalog.errors import SchemaConflict
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.schema_change import SchemaChange, merge
from catalog.iceberg.table_catalog import TableCatalog
from catalog.journal_entries import JournalContents
from catalog.model import TopicRow, new_id
from catalog.registry import Registry
from catalog.registry.restoring import Retained
from schema_mapping.columns.ledger import LedgerState
from schema_mapping.columns.options import MappingOptions
from schema_mapping.field_ids import assign
from schema_mapping.ledger_rebuild import rebuild_ledger
from schema_mapping.row import row_mapping_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltTopic:
    """`left` are files not provably next. `unknown` are archived offsets (partition, start, end) shown only by rows."""

    topic: str
    table: str
    schema_versions: int
    ranges: int
    staged: int
    from_journal: bool
    metadata: int = 0
    left: tuple[LeftFile, ...] = ()
    unknown: tuple[tuple[int, int, int], ...] = ()


class Rebuild:
    """By default every configured topic with a table.

    An operator vouches for `starts`, first offsets of one topic.
    """

    def __init__(
        self,
        config: Config,
        topics: Sequence[str] = (),
        *,
        starts: Mapping[int, int] | None = None,
    ) -> None:
        if starts and len(topics) != 1:
            raise ConfigError("first offsets are those of one topic's partitions: name that topic")
        self._config = config
        self._topics = tuple(topics)
        self._starts = dict(starts or {})
        self._journal = Journal.of(config)

    def run(self) -> tuple[RebuiltTopic, ...]:
        """Raises if a topic can't be restored exactly; earlier ones are done."""
        with Registry(self._config.registry.dsn) as registry, TableCatalog(self._config.catalog) as catalog:
            return tuple(self._rebuild(topic, registry, catalog) for topic in self._selected(catalog))

    def _selected(self, catalog: TableCatalog) -> tuple[TopicConfig, ...]:
        if self._topics:
            return self._config.select((), self._topics)
        spaces = self._config.namespaces
        archives = {name: topic for space in spaces for name, topic in catalog.archives(space).items()}
        return tuple(
            settings
            for settings in self._config.select(archives.values())
            if archives.get(settings.table) == settings.name
        )

    def _rebuild(self, settings: TopicConfig, registry: Registry, catalog: TableCatalog) -> RebuiltTopic:
        table = catalog.adopt(settings.table, topic=settings.name)
        if table is None:
            raise NotArchived(
                "The topic has no table to rebuild from: check `table` in its section, and `warehouse` in [catalog]",
                topic=settings.name,
                table=settings.table,
            )
        owner = table.topic
        topic = registry.topics.register(
            cluster_id=owner.cluster_id, topic=owner.topic, topic_id=owner.topic_id, table=settings.table
        )
        with registry.lease(topic) as leased:
            if not leased:
                raise TopicBusy("Another archiver is at work on the topic: stop it first", topic=topic.topic)
            return self._restore(settings, ArchiveTable(topic=topic, iceberg=table.iceberg), registry)

    def _restore(self, settings: TopicConfig, table: ArchiveTable, registry: Registry) -> RebuiltTopic:
        topic, objects = table.topic, ObjectStore.of_table(table.iceberg)
        entries = self._journal.of_table(table)
        completed = complete_journal(table, entries, FORMATS)
        journal = entries.read(keeps_replaced=True)
        files = {file.path: file for file in ManifestReader().files(table.iceberg)}
        journaled = {path for range_ in journal.ranges for path in range_.paths}
        is_complete = bool(journal.schemas) and journal.schemas[-1].version.version >= table.ledger_version
        paths = sorted(files.keys() - journaled if is_complete else files)
        footers = read_footers({path: FORMATS.named(files[path].format, path) for path in paths}, objects)
        state = journal.ledger if is_complete else self._derived(settings, table, journal, footers.values())
        rows = self._unnamed(table, files, footers, registry, state)
        ranges = table_ranges(table, journal.ranges, files, without_journaled(footers, entries, journal.ranges))
        complete = rows.complete(ranges, {(stored.partition, *stored.offsets) for stored in journal.ranges})
        done = registry.restore(
            topic,
            table_uuid=table.uuid,
            state=state,
            records=[schema.record for schema in journal.schemas],
            ranges=complete.ranges,
            account=(*journal.account, *(Interval.of(stored, is_unknown=True) for stored in complete.unknown)),
            retained=Retained(
                first_offsets=journal.first_offsets,
                claimed_offsets=table.first_offsets,
                holds=journal.holds,
                erased=journal.erased,
                replaced=files_in_store(journal.replaced, table, objects),
            ),
        )
        for commit_id, accepted in entries.accepted():
            registry.rows.record_refill(topic, replaced={}, accepted=accepted, commit_id=commit_id)
        versions = frozenset(version.version for version in registry.ledger.load(topic).versions)
        is_whole = is_complete and versions <= {schema.version.version for schema in journal.schemas}
        metadata = _restore_metadata(entries, topic, registry, is_whole=is_whole)
        ends = self._ends(table, registry, journal)
        waiting = continuing_ranges(table, objects, FORMATS, versions=versions, ends=ends)
        staged = registry.files.stage(topic, waiting.ranges, table_offsets=table.offsets)
        trail = AuditTrail(topic=topic, journal=entries, registry=registry)
        trail.settled(completed)
        counts = {"schema_versions": done.schema_versions, "ranges": done.ranges, "staged": len(staged.accepted)}
        trail.record(Noted(kind="rebuild", id=f"rebuild-{new_id()}", details=counts))
        formats = {path: FORMATS.named(file.format, path) for path, file in files.items()}
        restore_values(registry, topic, formats, objects)  # last: it opens each file, and only makes searches faster
        return RebuiltTopic(
            topic=topic.topic,
            table=topic.table,
            schema_versions=done.schema_versions,
            ranges=done.ranges,
            staged=len(staged.accepted),
            from_journal=is_complete,
            metadata=metadata,
            left=waiting.left,
            unknown=tuple((stored.partition, *stored.offsets) for stored in complete.unknown),
        )

    def _unnamed(
        self,
        table: ArchiveTable,
        files: Mapping[str, TableFile],
        footers: Mapping[str, SegmentMetadata],
        registry: Registry,
        state: LedgerState,
    ) -> UnnamedRows:
        objects = ObjectStore.of_table(table.iceberg)
        mappings = VersionMappings({version.version: version.mapping for version in state.versions})
        return UnnamedRows(
            table=table,
            storage=TopicStorage(
                deletes=DeleteFiles(objects, FORMATS),
                objects=objects,
                formats=FORMATS,
                mappings=KnownMappings(table.topic.topic, mappings),
            ),
            files=files,
            footers=footers,
            registered=registry.rows.committed_spans(table.topic, dict.fromkeys(table.offsets, 0)),
        )

    def _ends(self, table: ArchiveTable, registry: Registry, journal: JournalContents) -> Ends:
        reached = {
            partition: position.next_offset for partition, position in registry.files.accepted_ends(table.topic).items()
        }
        for partition, position in table.offsets.items():
            reached[partition] = max(position.next_offset, reached.get(partition, 0))
        starts: dict[int, set[int]] = defaultdict(set)
        for recorded in (registry.starts.decide(table.topic), *(start.starts for start in journal.starts)):
            for partition, start in recorded.items():
                if partition not in reached:
                    starts[partition].add(start)
        # A log that was cut since then has lost the next records, so its present start says nothing.
        registry.starts.first_log_starts(
            table.topic, {partition: max(offsets) for partition, offsets in starts.items()}
        )
        for partition, start in self._starts.items():
            if partition not in reached:
                starts[partition].add(start)
        registry.starts.decide(table.topic, {partition: max(offsets) for partition, offsets in starts.items()})
        return Ends(reached=reached, starts=starts)

    def _derived(
        self,
        settings: TopicConfig,
        table: ArchiveTable,
        journal: JournalContents,
        footers: Iterable[SegmentMetadata],
    ) -> LedgerState:
        texts = {schema.version.version: schema.version.mapping for schema in journal.schemas}
        for footer in footers:
            texts |= {version: text for version, text in footer.mappings.items() if version not in texts}
        state = rebuild_ledger(row_mapping_from_text(text) for text in texts.values())
        return state if state.newest >= table.ledger_version else self._configured(settings, table, state)

    def _configured(self, settings: TopicConfig, table: ArchiveTable, state: LedgerState) -> LedgerState:
        schemas = TopicSchemas.read(settings, self._config.schema_registry)
        for options in _choices(mapping_options(settings)):
            assignment = assign(
                state,
                key=schemas.key,
                value=schemas.value,
                options=options,
                partition_source=table.partition_source,
            )
            if assignment.version == table.ledger_version and _has_columns(table, SchemaChange.of(assignment)):
                return assignment.state
        raise UpkeepError(
            "no footer has the mapping of the table's newest columns, and the configured schema doesn't lead to "
            "them: give the journal (`archive.journal`) or the schema of that time, or restore the database",
            topic=settings.name,
            table=settings.table,
            schema_version=table.ledger_version,
        )


def _restore_metadata(journal: TableJournal, topic: TopicRow, registry: Registry, *, is_whole: bool) -> int:
    """Restore entries, and return their number.

    If `is_whole`, the journal has all versions, so it wasn't lost: it gets only later ones again. Then entries without
    an object were erased, and the registry's database was set back since.
    """
    folder = journal.metadata
    if folder is None:
        return 0
    journaled = registry.metadata.ids(topic, current_in=folder.path)  # before the objects, which are written first
    objects = folder.ids()
    if is_whole:
        registry.metadata.doom_ids(topic, journaled - objects)
    return registry.metadata.restore(topic, folder.read(objects), folder.path, folder.ids)


def _choices(options: MappingOptions) -> Iterator[MappingOptions]:
    """Without a configured choice, also the default of older tables (ADR 92)."""
    yield options
    if options.keeps_types:
        yield replace(options, well_known_types="struct", keeps_types=False)


def _has_columns(table: ArchiveTable, change: SchemaChange) -> bool:
    """By field ids: other engines may have renamed columns."""
    try:
        return _types(merge(change.adding, table.schema)) == _types(table.schema)
    except SchemaConflict:
        return False


def _types(schema: Schema) -> dict[int, str]:
    return {
        field_id: type(field.field_type).__name__ if isinstance(field.field_type, StructType) else str(field.field_type)
        for field_id, field in index_by_id(schema).items()
    }
