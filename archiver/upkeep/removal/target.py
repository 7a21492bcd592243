"""What the tasks of a removal need of a topic's table."""

from __future__ import annotations

from collections.abc import Iterable

from archiver.archive.table_files import TableFile
from archiver.config import Config
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.upkeep.removal.rewriting import RemovalTarget
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.partitions import partitioned_by, unit_of
from catalog.registry import Registry


def removal_target(config: Config, table: ArchiveTable, registry: Registry, formats: SegmentFormats) -> RemovalTarget:
    """The target of tasks on this table."""
    state = registry.ledger.load(table.topic)
    return RemovalTarget(
        topic=table.topic.topic,
        mappings={each.version: each.mapping for each in state.versions},
        table_properties=table.properties,
        bloom_filters=table.bloom_filters,
        objects=ObjectStore.of_table(table.iceberg),
        formats=formats,
        spool=config.archive.spool,
    )


def places_of(table: ArchiveTable, files: Iterable[TableFile]) -> dict[str, str | None]:
    """The transform and field of the partitions that files are in, by path. None for a spec that isn't ours."""
    specs = table.iceberg.metadata.specs()
    told: dict[int, str | None] = {}
    for number, spec in specs.items():
        is_ours = len(spec.fields) == 1 and unit_of(spec.fields[0]) is not None
        told[number] = partitioned_by(spec.fields[0]) if is_ours else None
    return {file.path: told.get(file.spec_id) for file in files}
