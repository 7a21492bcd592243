"""Files that were uploaded and never committed, found by listing a table's data: those that continue its offsets.

A registry that was lost knew of them; any file that starts where the table ends holds the very records that come next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from archiver.storage.data_names import DataName
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentFormat, SegmentMetadata
from archiver.upkeep.footers import range_of, read_footers
from catalog.archive_table import ArchiveTable
from catalog.model import PartitionOffset, TranslatedRange
from catalog.partitions import placed


def continuing_ranges(
    table: ArchiveTable, objects: ObjectStore, format_: SegmentFormat, *, versions: frozenset[int]
) -> tuple[TranslatedRange, ...]:
    """Ranges of unreferenced files that continue the table's partitions, each partition's a chain.

    Only of `versions`, the schema versions that are known. Of several that start at one offset the longest is taken.
    """
    offsets = table.offsets
    paths = [each.path for each in objects.list(table.data_location) if _may_continue(each.name, offsets)]
    found: dict[int, dict[int, list[TranslatedRange]]] = defaultdict(lambda: defaultdict(list))
    for path, footer in read_footers(paths, objects, format_).items():
        if footer.schema_version not in versions or not _is_ours(table, footer):
            continue
        info = format_.describe(objects, path, partition_value=0, table_properties=table.properties)
        place = placed(table.iceberg.metadata, info)
        one = None
        if place is not None:
            one = range_of(path, footer, replace(info, partitioned_by=place[0], partition_value=place[1]))
        if one is not None:
            found[one.partition][one.start_offset].append(one)
    return tuple(
        one
        for partition, starts in sorted(found.items())
        for one in _chain(starts, offsets[partition].next_offset if partition in offsets else min(starts))
    )


def _chain(starts: Mapping[int, list[TranslatedRange]], at: int) -> Iterable[TranslatedRange]:
    while at in starts:
        longest = max(starts[at], key=lambda one: (one.end_offset, one.id))
        yield longest
        at = longest.end_offset


def _may_continue(name: str, offsets: Mapping[int, PartitionOffset]) -> bool:
    found = DataName.of(name)
    if found is None or found.partition is None or found.start_offset is None:
        return False
    known = offsets.get(found.partition)
    return known is None or found.start_offset >= known.next_offset


def _is_ours(table: ArchiveTable, footer: SegmentMetadata) -> bool:
    origin, topic = footer.origin, table.topic
    return origin is not None and (origin.cluster_id, origin.topic) == (topic.cluster_id, topic.topic)
