"""Add committed ranges that the registry lacks after a restore of its database."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from archiver.archive.table_files import ManifestReader, TableFile
from archiver.audit.acts import Noted
from archiver.audit.trail import AuditTrail
from archiver.commit.footers import read_footers, without_journaled
from archiver.commit.journal_completion import complete_journal, ranges_of_commit
from archiver.commit.left_files import files_in_store
from archiver.commit.registry_lag import NEWER_STATE, Lacking, LackingOffsets, lacking_offsets, registry_behind
from archiver.commit.table_ranges import table_ranges
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.journal import TableJournal
from archiver.storage.objects import ObjectStore
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import history, summary_of
from catalog.iceberg.offsets import decode_ranges
from catalog.model import new_id
from catalog.offset_range import OffsetRange
from catalog.ranges.replaced_files import ReplacedFile
from catalog.ranges.spans import Cover, uncovered
from catalog.ranges.stored_ranges import StoredRange
from catalog.registry import Registry
from catalog.registry.restoring import Retained

_UNKNOWN: Final = (
    "Neither journal nor footers nor snapshots say which ranges these are, so rows that are missing among them would be"
    " missed. Restore a newer backup of the registry's database, or configure the journal of that time"
    " (`archive.journal`), and run it again"
)

_OTHER_BORDERS: Final = (
    "The journal has these ranges with other borders than the registry: they were compacted, erased or retired since"
    f" the backup. {NEWER_STATE}"
)

_LOG = logging.getLogger(__name__)


def add_lacking_ranges(
    table: ArchiveTable, registry: Registry, journal: TableJournal, formats: SegmentFormats = FORMATS
) -> int:
    """Add missing ranges, holds, erasures, accepted losses and replaced files; return the count of ranges.

    Raises StorageError, and RegistryBehind if ranges are in neither journal nor commits.
    """
    lacking = lacking_offsets(table, registry)
    if not lacking:
        return 0
    topic = table.topic
    completed = complete_journal(table, journal, formats)
    contents = journal.read(keeps_replaced=True)
    files = {file.path: file for file in ManifestReader().files(table.iceberg)}
    journaled = {path for journaled_range in contents.ranges for path in journaled_range.paths}
    unknown = {
        path: formats.named(file.format, path)
        for path, file in files.items()
        if path not in journaled and _may_have(file, lacking)
    }
    objects = ObjectStore.of_table(table.iceberg)
    footers = read_footers(unknown, objects)
    ranges = [
        table_range
        for table_range in table_ranges(
            table, contents.ranges, files, without_journaled(footers, journal, contents.ranges)
        )
        if table_range.partition in lacking and table_range.end_offset > lacking[table_range.partition].start
    ]
    if _uncovered(ranges, lacking):
        ranges += _ranges_of_commits(table, ranges, lacking, formats)
    if left := _uncovered(ranges, lacking):
        raise registry_behind(table, left, advice=_UNKNOWN)
    spans = registry.rows.committed_spans(topic, dict.fromkeys(lacking, 0))
    apart = [candidate for candidate in ranges if not _overlaps(candidate, spans[candidate.partition])]
    if left := _uncovered(apart, lacking):
        raise registry_behind(table, left, advice=_OTHER_BORDERS)
    erased = registry.erasures.offsets(topic)
    done = registry.restore(
        topic,
        table_uuid=table.uuid,
        state=registry.ledger.load(topic),
        records=(),
        ranges=ranges,
        account=contents.account,
        retained=Retained(
            first_offsets=contents.first_offsets,
            claimed_offsets=table.first_offsets,
            holds=contents.holds,
            erased=[
                (commit_id, (partition, start, end))
                for commit_id, (partition, start, end) in contents.erased
                if uncovered([(start, end)], erased.get(partition, ()))
            ],
            replaced=files_in_store([file for file in contents.replaced if _is_of(file, lacking)], table, objects),
        ),
    )
    for commit_id, accepted in journal.accepted():
        registry.rows.record_refill(topic, replaced={}, accepted=accepted, commit_id=commit_id)
    if left := lacking_offsets(table, registry):
        raise registry_behind(table, left, advice=_UNKNOWN)
    trail = AuditTrail(topic=topic, journal=journal, registry=registry)
    trail.settled(completed)
    trail.record(Noted(kind="rebuild", id=f"rebuild-{new_id()}", details={"ranges": done.ranges}))
    _LOG.warning(
        "%s: the registry lacked %d ranges that are in the table, as its database was restored from an older backup;"
        " they were added from journal and footers",
        topic.topic,
        done.ranges,
    )
    return done.ranges


def _is_of(replaced: ReplacedFile, lacking: Lacking) -> bool:
    stored = replaced.range
    return stored.partition in lacking and stored.end_offset > lacking[stored.partition].start


def _overlaps(one: StoredRange, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start < one.end_offset and one.start_offset < end for start, end in spans)


def _uncovered(ranges: Sequence[StoredRange], lacking: Lacking) -> Lacking:
    gaps_by_partition: dict[int, LackingOffsets] = {}
    for partition, offsets in lacking.items():
        spans = [item.offsets for item in ranges if item.partition == partition]
        start = offsets.registry_end
        if start is None:  # the partition's first offset is the first that anything knows of
            start = min((first for first, _ in spans), default=0)
        if gaps := uncovered([(start, offsets.table_end)], spans):
            gaps_by_partition[partition] = LackingOffsets(registry_end=gaps[0][0], table_end=offsets.table_end)
    return gaps_by_partition


def _ranges_of_commits(
    table: ArchiveTable, ranges: Sequence[StoredRange], lacking: Lacking, formats: SegmentFormats
) -> list[StoredRange]:
    """Their files may be replaced."""
    objects = ObjectStore.of_table(table.iceberg)
    cover = Cover(map(OffsetRange.of_range, ranges))
    more: list[StoredRange] = []
    for snapshot in history(table.iceberg.metadata):
        summary = summary_of(snapshot)
        named = decode_ranges(summary.get(keys.RANGES, "{}"))
        if not any(at in lacking and end > lacking[at].start for at, (_, end) in named.items()):
            continue
        more += [
            StoredRange.of(item, commit_id=summary.get(keys.COMMIT_ID))
            for item in ranges_of_commit(snapshot, table, objects, formats) or ()
            if item.partition in lacking
            and item.end_offset > lacking[item.partition].start
            and not cover.touches(OffsetRange.of_range(item))
        ]
    return more


def _may_have(file: TableFile, lacking: Lacking) -> bool:
    partitions, offsets = file.partitions, file.offsets
    if partitions is None or offsets is None:
        return True
    return any(
        partitions.low <= partition <= partitions.high and offsets.high >= span.start and offsets.low < span.table_end
        for partition, span in lacking.items()
    )
