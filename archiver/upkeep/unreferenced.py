"""Files that were uploaded and never committed, found by listing a table's data: those that continue its offsets.

A registry that was lost knew of them; any file that starts where the table ends holds the very records that come next.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyiceberg.types import TimestamptzType

from archiver.storage.data_names import DataName
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentFormat, SegmentMetadata
from archiver.upkeep.footers import range_of, read_footers
from catalog.archive_table import TRANSFORMS, ArchiveTable
from catalog.model import PartitionOffset, TranslatedRange
from schema_mapping.fixed_columns import INGEST_TIMESTAMP_ID


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
        low = info.lower_bounds.get(INGEST_TIMESTAMP_ID)
        one = None if low is None else range_of(path, footer, replace(info, partition_value=_ordinal(table, low)))
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


def _ordinal(table: ArchiveTable, bound: bytes) -> int:
    """The time partition of a bound of the ingest timestamp, as the table's transform has it."""
    (micros,) = struct.unpack("<q", bound)
    ordinal = TRANSFORMS[table.partition_by].transform(TimestamptzType())(micros)
    assert ordinal is not None
    return int(ordinal)
