"""Find uploaded, uncommitted files that continue the table's offsets.

A partition missing in the table begins only at a known first offset: its first file may never have been uploaded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum

from archiver.commit.footers import place_in_table, ranges_of, read_footers
from archiver.storage.file_names import DataFileName
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentMetadata
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import DataFileInfo, TranslatedRange


class LeftFor(StrEnum):
    START = "nothing shows that the partition begins there, or goes on there from what is archived"
    TOPIC = "it is of another topic of this name, deleted since"
    SCHEMA = "the schema version that wrote it isn't known any more"
    PARTITIONING = "its rows fit into no partition of the table"
    FILES = "other files with records of the same offsets are missing, and it holds only some of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftFile:
    path: str
    partition: int
    start_offset: int
    reason: LeftFor


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """`reached` are the ends of archived or staged offsets."""

    reached: Mapping[int, int]
    starts: Mapping[int, AbstractSet[int]] = field(default_factory=dict)

    def at(self, partition: int, found: AbstractSet[int]) -> int | None:
        """Return the next offset; None if no file in `found` is at a known first offset."""
        if partition in self.reached:
            return self.reached[partition]
        # Offset 0 is always a first offset. Of several known starts the last one counts: nothing was staged before it.
        return max({0, *self.starts.get(partition, ())} & found, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreferenced:
    ranges: tuple[TranslatedRange, ...]
    left: tuple[LeftFile, ...]


def continuing_ranges(
    table: ArchiveTable, objects: ObjectStore, formats: SegmentFormats, *, versions: frozenset[int], ends: Ends
) -> Unreferenced:
    """Find files that continue the partitions, with known schema `versions`.

    Of several the chain that reaches furthest wins, then the one with most records: a rewrite may have left some out.
    """
    listed = [item.path for item in objects.list(table.data_location) if _may_continue(item.name, table, ends)]
    files = {path: formats.of_path(path) for path in listed}

    def describe(path: str) -> DataFileInfo:
        return files[path].describe(objects, path, table_properties=table.properties)

    described: dict[str, tuple[SegmentMetadata, DataFileInfo]] = {}
    left: list[LeftFile] = []
    for path, footer in read_footers(files, objects).items():
        entry = _described(path, footer, table, describe, versions)
        if isinstance(entry, DataFileInfo):
            described[path] = (footer, entry)
        elif entry is not None and footer.origin is not None:
            left.append(_left(path, footer.origin.partition, footer.origin.start_offset, entry))
    ranges = ranges_of(described)
    by_partition: dict[int, dict[int, list[TranslatedRange]]] = defaultdict(lambda: defaultdict(list))
    for whole in ranges.whole:
        by_partition[whole.partition][whole.start_offset].append(whole)
    chains = [
        entry
        for partition, starts in sorted(by_partition.items())
        for entry in _chain(starts, ends.at(partition, starts.keys()))
    ]
    staged = {chain.id for chain in chains}
    left += [
        _left(file.path, entry.partition, entry.start_offset, reason)
        for group, reason in ((ranges.whole, LeftFor.START), (ranges.partial, LeftFor.FILES))
        for entry in group
        if entry.id not in staged
        for file in entry.files
    ]
    return Unreferenced(
        ranges=tuple(chains),
        left=tuple(sorted(left, key=lambda entry: (entry.partition, entry.start_offset, entry.path))),
    )


def _described(
    path: str,
    footer: SegmentMetadata,
    table: ArchiveTable,
    describe: Callable[[str], DataFileInfo],
    known: frozenset[int],
) -> DataFileInfo | LeftFor | None:
    """Return the reason if it can't be staged; None for another topic's file."""
    origin, topic = footer.origin, table.topic
    if origin is None or (origin.cluster_id, origin.topic) != (topic.cluster_id, topic.topic):
        return None
    if topic.topic_id is not None and origin.topic_id != str(topic.topic_id):
        return LeftFor.TOPIC
    if footer.schema_version not in known:
        return LeftFor.SCHEMA
    return place_in_table(describe(path), footer, table) or LeftFor.PARTITIONING


def _chain(starts: Mapping[int, list[TranslatedRange]], at: int | None) -> list[TranslatedRange]:
    following: dict[int, TranslatedRange] = {}
    reached: dict[int, tuple[int, int]] = {}

    def reach(one: TranslatedRange) -> tuple[int, int]:
        end, rows = reached.get(one.end_offset, (one.end_offset, 0))
        return end, rows + one.rows

    for start in sorted(starts, reverse=True):
        following[start] = max(starts[start], key=lambda one: (*reach(one), one.end_offset, one.id))
        reached[start] = reach(following[start])
    chain: list[TranslatedRange] = []
    while at in following:
        chain.append(following[at])
        at = chain[-1].end_offset
    return chain


def _may_continue(name: str, table: ArchiveTable, ends: Ends) -> bool:
    parsed = DataFileName.parse(name)
    if parsed is None or parsed.partition is None or parsed.start_offset is None or not parsed.is_of(table.topic.topic):
        return False
    return parsed.start_offset >= ends.reached.get(parsed.partition, 0)


def _left(path: str, partition: int, start_offset: int, reason: LeftFor) -> LeftFile:
    return LeftFile(path=path, partition=partition, start_offset=start_offset, reason=reason)
