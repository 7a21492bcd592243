"""Write missing journal entries, if ranges have exactly the offsets and digest in the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
from pyiceberg.table.snapshots import Snapshot

from archiver.archive.manifests import live_entries, manifests_of
from archiver.commit.footers import place_in_table, ranges_of, read_footers
from archiver.commit.table_ranges import range_without_file
from archiver.errors import StorageError
from archiver.storage.formats import SegmentFormats
from archiver.storage.journal import TableJournal
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentMetadata
from catalog.digests import DIGEST_ALGORITHM, add_digests
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import history, summary_of
from catalog.iceberg.offsets import decode_ranges, decode_spans, spans
from catalog.iceberg.settle import Landed, Settled
from catalog.model import DataFileInfo, TranslatedRange
from catalog.ranges.spans import uncovered


def complete_journal(table: ArchiveTable, journal: TableJournal, formats: SegmentFormats) -> Settled:
    """Write missing entries of retained commits; return their ranges. Raises StorageError.

    Skips commits from before the journal, or whose files are gone or contradict the summary.
    """
    landed: list[Landed] = []
    objects = ObjectStore.of_table(table.iceberg)
    for snapshot in _unjournaled(table, journal):
        ranges = ranges_of_commit(snapshot, table, objects, formats)
        if ranges is not None:
            commit_id = summary_of(snapshot)[keys.COMMIT_ID]
            landed += [Landed(range=item, commit_id=commit_id, snapshot_id=snapshot.snapshot_id) for item in ranges]
    settled = Settled(landed=tuple(landed), refused=(), waiting=())
    journal.keep_settled(settled)
    return settled


def _unjournaled(table: ArchiveTable, journal: TableJournal) -> Iterator[Snapshot]:
    if journal.folder is None:
        return
    journaled: set[str] = set()
    covered: dict[int, list[tuple[int, int]]] = {}
    for entry in journal.commits.read():
        if entry.commit.commit_id is not None:
            journaled.add(entry.commit.commit_id)
        for item in entry.commit.ranges:
            covered.setdefault(item.partition, []).append((item.start_offset, item.end_offset))
    if not journaled and not covered and not journal.has_starts():
        return
    first = min(journaled, default="")
    for snapshot in history(table.iceberg.metadata):
        summary = summary_of(snapshot)
        commit_id = summary.get(keys.COMMIT_ID)
        if commit_id is None or keys.RANGES not in summary or commit_id in journaled or commit_id < first:
            continue
        named = decode_ranges(summary[keys.RANGES])
        if any(uncovered([span], covered.get(partition, ())) for partition, span in named.items()):
            yield snapshot


def ranges_of_commit(
    snapshot: Snapshot, table: ArchiveTable, objects: ObjectStore, formats: SegmentFormats
) -> tuple[TranslatedRange, ...] | None:
    """None if the files that the commit added don't show them."""
    try:
        described = _described(snapshot, table, objects, formats)
    except StorageError as error:
        if error.retryable:
            raise
        return None
    if described is None:
        return None
    ranges_found = ranges_of(described)
    if ranges_found.partial:
        return None
    summary = summary_of(snapshot)
    named = decode_ranges(summary[keys.RANGES])
    lost = decode_spans(summary.get(keys.LOST, "{}"))
    ranges = [*ranges_found.whole, *(range_without_file(table, snapshot, *span, lost=True) for span in lost)]
    covered = [(item.partition, (item.start_offset, item.end_offset)) for item in ranges]
    for partition, span in named.items():
        partition_offsets = [offsets for at, offsets in covered if at == partition]
        ranges += [
            range_without_file(table, snapshot, partition, *gap, lost=False)
            for gap in uncovered([span], partition_offsets)
        ]
    try:
        is_same = spans(ranges) == named
    except ValueError:
        return None
    return tuple(ranges) if is_same and _has_digest(ranges, summary) else None


def _described(
    snapshot: Snapshot, table: ArchiveTable, objects: ObjectStore, formats: SegmentFormats
) -> dict[str, tuple[SegmentMetadata, DataFileInfo]] | None:
    entries = {
        entry.data_file.file_path: entry.data_file
        for manifest in manifests_of(table.iceberg, snapshot)
        if manifest.content is ManifestContent.DATA and manifest.added_snapshot_id == snapshot.snapshot_id
        for entry in live_entries(table.io, manifest)
        if entry.status == ManifestEntryStatus.ADDED
    }
    by_format = {path: formats.named(file.file_format.lower(), path) for path, file in entries.items()}
    described: dict[str, tuple[SegmentMetadata, DataFileInfo]] = {}
    for path, footer in read_footers(by_format, objects).items():
        if footer.origin is None:
            return None
        info = by_format[path].describe(objects, path, table_properties=table.properties)
        partitioned = place_in_table(info, footer, table)
        if partitioned is None or partitioned.rows != entries[path].record_count:
            return None
        described[path] = (footer, partitioned)
    return described


def _has_digest(ranges: list[TranslatedRange], summary: Mapping[str, str]) -> bool:
    if summary.get(keys.DIGEST_ALGORITHM) != DIGEST_ALGORITHM or keys.DIGEST not in summary:
        return True
    return add_digests(item.digest for item in ranges) in (None, summary[keys.DIGEST])
