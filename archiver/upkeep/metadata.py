"""`archiver metadata`: names and values for keys and offsets. Entries never name files, so rewrites change nothing."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.table_files import ManifestReader, TableFile
from archiver.audit.acts import Noted
from archiver.audit.trail import AuditTrail, author
from archiver.config import Config
from archiver.errors import ConfigError, StorageError, UpkeepError
from archiver.storage.formats import FORMATS
from archiver.storage.journal import Journal
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import RowRange
from archiver.upkeep.archived_topic import ArchivedTopic, find_archived, known_topics
from archiver.upkeep.offset_spans import offset_spans
from catalog.errors import RegistryError
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import file_name, new_id
from catalog.ranges.spans import joined, uncovered
from catalog.record_metadata import MetadataEntry, MetadataTarget, OfKey, OfOffsets, current
from catalog.registry import Registry
from catalog.registry.held_ranges import HeldRange
from schema_mapping import names as columns

MOST_KEY: Final = 4_096
MOST_VALUE: Final = 4_096
"""Bytes of a key or value."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTargets:
    """What entries are for: keys, half-open spans of offsets by partition, and a file for the offsets that it has."""

    keys: tuple[bytes, ...] = ()
    offsets: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    file: str | None = None

    @property
    def are_none(self) -> bool:
        return not (self.keys or self.offsets or self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The entries of a change, or of a dry run. Without `is_journaled`, a lost registry loses them."""

    entries: tuple[MetadataEntry, ...]
    is_journaled: bool


class MetadataKeeper:
    """Methods raise ConfigError, NotArchived, and subclasses of CatalogError and StorageError."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def set(self, topic: str, targets: NamedTargets, values: Mapping[str, str], *, dry_run: bool = False) -> Changed:
        for name, value in values.items():
            check_name(name)
            check_value(name, value)
        with self._archived(topic, dry_run=dry_run) as (archived, registry):
            chosen = _resolved(targets, archived.table, registry)
            _check_offsets(chosen, archived.table, registry)
            changes = [(target, name, value) for target in chosen for name, value in values.items()]
            return self._add(archived, registry, changes, dry_run=dry_run)

    def unset(self, topic: str, targets: NamedTargets, names: Sequence[str], *, dry_run: bool = False) -> Changed:
        """Delete values. Their history stays."""
        with self._archived(topic, dry_run=dry_run) as (archived, registry):
            chosen = _resolved(targets, archived.table, registry)
            present = current(registry.metadata.load(archived.topic))
            changes = [(target, name, None) for target in chosen for name in dict.fromkeys(names)]
            values = {(entry.target, entry.name) for entry in present}
            for target, name, _ in changes:
                if (target, name) not in values:
                    raise _not_set(topic, target, name, present)
            return self._add(archived, registry, changes, dry_run=dry_run)

    def listed(
        self, topic: str, targets: NamedTargets, names: Sequence[str] = (), *, with_history: bool = False
    ) -> tuple[MetadataEntry, ...]:
        """The values, or all entries, that are for these keys or some of these offsets; without any, all."""
        with Registry(self._config.registry.dsn) as registry:
            (row,) = known_topics(self._config, (topic,), registry)
            chosen = self._chosen(topic, targets, registry)
            entries = registry.metadata.load(row, names or None)
            shown = entries if with_history else current(entries)
            return tuple(entry for entry in shown if chosen is None or _concerns(entry, chosen))

    def _chosen(self, topic: str, targets: NamedTargets, registry: Registry) -> tuple[MetadataTarget, ...] | None:
        if targets.are_none:
            return None
        if targets.file is None:
            return _given(targets)
        with TableCatalog(self._config.catalog) as catalog:
            table = find_archived(self._config, topic, registry=registry, catalog=catalog, dry_run=True).table
            return _resolved(targets, table, registry)

    def _add(
        self,
        archived: ArchivedTopic,
        registry: Registry,
        changes: Sequence[tuple[MetadataTarget, str, str | None]],
        *,
        dry_run: bool,
    ) -> Changed:
        """Write entries to audit trail and journal before they take effect."""
        by = author(self._config.audit)
        time, numbers = registry.metadata.stamp(archived.topic, len(changes))
        entries = tuple(
            MetadataEntry(
                id=new_id(),
                target=target,
                name=name,
                value=value,
                time=time,
                sequence=number,
                author=f"{by.principal} on {by.host}",
                salt=secrets.token_hex(16),
            )
            for (target, name, value), number in zip(changes, numbers, strict=True)
        )
        journal = Journal.of(self._config).of_table(archived.table)
        folder = journal.metadata
        if dry_run:
            return Changed(entries=entries, is_journaled=folder is not None)
        entries = registry.metadata.add(archived.topic, entries, None if folder is None else folder.path)
        trail = AuditTrail(topic=archived.topic, journal=journal, registry=registry)
        trail.record(act_of(entries, "set" if entries[0].value is not None else "delete"))
        try:
            registry.metadata.publish(archived.topic, entries, None if folder is None else folder.write)
        except (RegistryError, StorageError):
            # If only the answer of the registry was lost, the entries are current.
            landed = {entry.id for entry in registry.metadata.load(archived.topic)}
            withdrawn = tuple(entry for entry in entries if entry.id not in landed)
            with suppress(StorageError):  # objects that stay have their rows, so an erasure deletes them
                if folder is not None:
                    for entry in withdrawn:
                        folder.delete(entry.id)
                registry.metadata.forget(archived.topic, [entry.id for entry in withdrawn])
            if withdrawn:
                trail.record(act_of(withdrawn, "withdraw"))
            raise
        return Changed(entries=entries, is_journaled=folder is not None)

    @contextmanager
    def _archived(self, topic: str, *, dry_run: bool) -> Iterator[tuple[ArchivedTopic, Registry]]:
        with Registry(self._config.registry.dsn) as registry, TableCatalog(self._config.catalog) as catalog:
            yield find_archived(self._config, topic, registry=registry, catalog=catalog, dry_run=dry_run), registry


def check_name(name: str) -> None:
    """Raise ConfigError for a name that can't be one. Names stay in the audit trail."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "a name of metadata begins with a letter, and has at most 128 letters, digits and _ . : -", name=name
        )


def check_value(name: str, value: str) -> None:
    if _CONTROL.search(value):
        raise ConfigError("a value of metadata is text without control characters", name=name)
    if len(value.encode()) > MOST_VALUE:
        raise ConfigError("the value is too long", name=name, size_bytes=len(value.encode()), most=MOST_VALUE)


def _given(targets: NamedTargets) -> tuple[MetadataTarget, ...]:
    for key in targets.keys:
        if len(key) > MOST_KEY:
            raise ConfigError("the key is too long for metadata", size_bytes=len(key), most=MOST_KEY)
    spans = ((partition, *span) for partition, parts in sorted(targets.offsets.items()) for span in parts)
    return (*map(OfKey, dict.fromkeys(targets.keys)), *(OfOffsets(*span) for span in spans))


def _resolved(targets: NamedTargets, table: ArchiveTable, registry: Registry) -> tuple[MetadataTarget, ...]:
    given = _given(targets)
    if targets.file is None:
        return given
    files = ManifestReader().files(table.iceberg)
    paths = [file.path for file in files]
    path = next((path for path in paths if targets.file in {path, file_name(path)}), None)
    if path is None:
        near = get_close_matches(file_name(targets.file), map(file_name, paths), 3)
        raise ConfigError(
            "the table has no such data file: see `archiver files`",
            topic=table.topic.topic,
            file=targets.file,
            **({"similar": near} if near else {}),
        )
    spans: dict[int, list[tuple[int, int]]] = {}
    ranges = registry.files.held_ranges(table.topic, [path])
    for part in ranges:
        # Another file may have rows of the range.
        own = ((part.start_offset, part.end_offset),) if part.is_whole else _own_spans(part, files.named([path]), table)
        spans.setdefault(part.partition, []).extend(own)
    if not ranges:
        raise UpkeepError(
            "the registry doesn't know which offsets the file has: run `archiver registry rebuild`, or give --offsets",
            file=path,
        )
    erased = registry.erasures.offsets(table.topic)
    of_file = tuple(
        OfOffsets(partition, start, end)
        for partition, parts in sorted(spans.items())
        for start, end in uncovered(joined(parts), erased.get(partition, ()))
    )
    if not of_file:
        raise ConfigError("all records of the file were erased", topic=table.topic.topic, file=path)
    return (*given, *of_file)


def _own_spans(part: HeldRange, files: Mapping[str, TableFile], table: ArchiveTable) -> Iterator[tuple[int, int]]:
    """The spans without a gap of the file's rows in the range. Raises StorageError."""
    rows = RowRange(partition=part.partition, start_offset=part.start_offset, end_offset=part.end_offset)
    objects = ObjectStore.of_table(table.iceberg)
    storage = TopicStorage.of_store(objects, FORMATS, KnownMappings(table.topic.topic))
    with closing(OpenFile.open(storage, files[part.path])) as opened:
        for block in opened.reader.blocks(rows):
            for kafka in opened.kafka(block, rows):
                yield from offset_spans(kafka.field(columns.OFFSET).to_numpy())


def _check_offsets(targets: Sequence[MetadataTarget], table: ArchiveTable, registry: Registry) -> None:
    """Raise ConfigError for offsets that aren't archived, or not any more."""
    erased = registry.erasures.offsets(table.topic)
    for target in targets:
        if not isinstance(target, OfOffsets):
            continue
        reached = table.offsets.get(target.partition)
        context = {
            "topic": table.topic.topic,
            "partition": target.partition,
            "offsets": f"{target.start_offset}-{target.end_offset - 1}",
        }
        if reached is None:
            raise ConfigError("the archive has no such partition", archived=sorted(table.offsets), **context)
        if target.end_offset > reached.next_offset:
            raise ConfigError("these offsets are not archived", archived_to=reached.next_offset, **context)
        first = table.first_offsets.get(target.partition, 0)
        if target.end_offset <= first:
            raise ConfigError("the records of these offsets were retired", first_offset=first, **context)
        if target.meets(erased):
            raise ConfigError("records of these offsets were erased: leave out their offsets", **context)


def _concerns(entry: MetadataEntry, targets: Sequence[MetadataTarget]) -> bool:
    return any(
        entry.target == target
        or (
            isinstance(target, OfOffsets)
            and isinstance(entry.target, OfOffsets)
            and entry.target.meets({target.partition: [(target.start_offset, target.end_offset)]})
        )
        for target in targets
    )


def _not_set(topic: str, target: MetadataTarget, name: str, present: Sequence[MetadataEntry]) -> ConfigError:
    names = [entry.name for entry in present if entry.target == target]
    others = [entry.target for entry in present if entry.name == name and _concerns(entry, (target,))]
    near = get_close_matches(name, names, 3)
    offsets = [f"{it.partition}:{it.start_offset}-{it.end_offset - 1}" for it in others if isinstance(it, OfOffsets)]
    return ConfigError(
        "no such metadata is set, so none was deleted: see `archiver metadata list`",
        topic=topic,
        name=name,
        **({"similar": near} if near else {}),
        **({"set_for_offsets": offsets} if offsets else {}),
    )


def act_of(entries: Sequence[MetadataEntry], did: str) -> Noted:
    """Without keys and values: the trail is never rewritten, so an erasure can't reach it."""
    acts = [{"id": entry.id, "name": entry.name, "sha256": entry.digest, **_place(entry)} for entry in entries]
    return Noted(kind="metadata", id=f"metadata-{did}-{entries[0].id}", details={"did": did, "entries": acts})


def _place(entry: MetadataEntry) -> dict[str, object]:
    match entry.target:
        case OfOffsets(partition, start, end):
            return {"offsets": {str(partition): [[start, end]]}}
        case _:
            return {}
