"""Committed ranges that the registry lacks, because its database was restored from an older backup.

The table's offsets then are ahead of the ranges that the registry has accepted. Without these ranges their files count
as files of other engines, and rows that others delete among them are missed by no check.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from archiver.archive.table_files import ManifestReader, TableFile
from archiver.audit.acts import Noted
from archiver.audit.trail import AuditTrail
from archiver.commit.footers import read_footers
from archiver.commit.journal_completion import complete_journal, ranges_of_commit
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
    """Add the ranges that the registry lacks, from journal and footers; return how many. What it knows stays.

    What the journal knows of holds, erasures and accepted losses since the backup is added, too. RegistryBehind if
    neither journal nor footers have some of the ranges: nothing that needs them may go on. Raises subclasses of
    StorageError.
    """
    lacking = lacking_offsets(table, registry)
    if not lacking:
        return 0
    topic = table.topic
    completed = complete_journal(table, journal, formats)
    contents = journal.read()
    files = {file.path: file for file in ManifestReader().files(table.iceberg)}
    journaled = {path for one in contents.ranges for path in one.paths}
    unknown = {
        path: formats.named(file.format, path)
        for path, file in files.items()
        if path not in journaled and _may_have(file, lacking)
    }
    footers = read_footers(unknown, ObjectStore.of_table(table.iceberg))
    ranges = [
        one
        for one in table_ranges(table, contents.ranges, files, footers)
        if one.partition in lacking and one.end_offset > lacking[one.partition].start
    ]
    if _uncovered(ranges, lacking):
        ranges += _ranges_of_commits(table, ranges, lacking, formats)
    if left := _uncovered(ranges, lacking):
        raise registry_behind(table, left, advice=_UNKNOWN)
    spans = registry.rows.committed_spans(topic, dict.fromkeys(lacking, 0))
    apart = [one for one in ranges if not _overlaps(one, spans[one.partition])]
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
            first_offsets={
                partition: max(contents.first_offsets.get(partition, 0), table.first_offsets.get(partition, 0))
                for partition in contents.first_offsets.keys() | table.first_offsets.keys()
            },
            holds=contents.holds,
            erased=[
                (commit_id, (partition, start, end))
                for commit_id, (partition, start, end) in contents.erased
                if uncovered([(start, end)], erased.get(partition, ()))
            ],
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


def _overlaps(one: StoredRange, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a range overlaps one that the registry has: it would be passed over, even if it reaches further."""
    return any(start < one.end_offset and one.start_offset < end for start, end in spans)


def _uncovered(ranges: Sequence[StoredRange], lacking: Lacking) -> Lacking:
    """The partitions whose lacking offsets these ranges don't cover, with the first offset that isn't covered."""
    found: dict[int, LackingOffsets] = {}
    for partition, offsets in lacking.items():
        here = [one.offsets for one in ranges if one.partition == partition]
        start = offsets.registry_end
        if start is None:  # the partition's first offset is the first that anything knows of
            start = min((first for first, _ in here), default=0)
        if gaps := uncovered([(start, offsets.table_end)], here):
            found[partition] = LackingOffsets(registry_end=gaps[0][0], table_end=offsets.table_end)
    return found


def _ranges_of_commits(
    table: ArchiveTable, ranges: Sequence[StoredRange], lacking: Lacking, formats: SegmentFormats
) -> list[StoredRange]:
    """The ranges of retained commits in lacking offsets that `ranges` don't have. Their files may be replaced."""
    objects = ObjectStore.of_table(table.iceberg)
    cover = Cover((one.partition, *one.offsets) for one in ranges)
    found: list[StoredRange] = []
    for snapshot in history(table.iceberg.metadata):
        summary = summary_of(snapshot)
        named = decode_ranges(summary.get(keys.RANGES, "{}"))
        if not any(at in lacking and end > lacking[at].start for at, (_, end) in named.items()):
            continue
        found += [
            StoredRange.of(one, commit_id=summary.get(keys.COMMIT_ID))
            for one in ranges_of_commit(snapshot, table, objects, formats) or ()
            if one.partition in lacking
            and one.end_offset > lacking[one.partition].start
            and not cover.touches(one.partition, one.start_offset, one.end_offset)
        ]
    return found


def _may_have(file: TableFile, lacking: Lacking) -> bool:
    """Whether a file may have offsets that the registry lacks, by its bounds."""
    held, offsets = file.partitions, file.offsets
    if held is None or offsets is None:
        return True
    return any(
        held.low <= partition <= held.high and offsets.high >= span.start and offsets.low < span.table_end
        for partition, span in lacking.items()
    )
