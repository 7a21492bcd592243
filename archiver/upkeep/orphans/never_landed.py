"""Orphans that no snapshot ever named: only they may go if the owner forbids deleting files.

Expired snapshots leave no record, so a file must be younger than the last expiry. Registry and journal may be younger,
so only the table is used. A table restored from older metadata reuses sequence numbers, so each data file of a manifest
is checked too.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from typing import Final
from uuid import UUID

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntryStatus, ManifestFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from archiver.archive.manifests import listed_by, live_entries, manifests_of
from archiver.errors import ObjectMissing
from archiver.storage.file_names import DataFileName
from archiver.storage.store_errors import storage_error
from archiver.upkeep.orphans.report import Orphan, OrphanKind
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.attempt_names import ManifestName
from catalog.iceberg.lineage import summary_of
from catalog.model import file_name

CLOCKS_APART_MS: Final = 3_600_000
"""How far the clocks of machines that write files and make commits may be apart."""

_SEQUENCE: Final = "sequence-number"


def never_landed(table: ArchiveTable, orphans: Sequence[Orphan], references: Container[str]) -> frozenset[str]:
    """Return the orphans' paths. Raises StorageError.

    `references` are the names in retained snapshots.
    """
    metadata = table.iceberg.metadata
    last = metadata.next_sequence_number() - 1
    unbroken = _unbroken(metadata, last)
    since_ms = _since_ms(unbroken, last)
    certain = {orphan.name for orphan in orphans if _is_young(orphan, since_ms)}
    back = _brought_back(table)
    attempts = {
        name.uuid
        for orphan in orphans
        if (name := ManifestName.of(orphan.name)) is not None and name.is_list
        if (sequence := _sequence_of(table.io, orphan.path)) is not None
        if sequence in unbroken or sequence > last  # another snapshot has the number, or none has it so far
        if all(
            file in certain or (sequence in unbroken and file in references and file not in back)
            for file in _brought(table.io, orphan.path, references)
        )
    }
    return frozenset(orphan.path for orphan in orphans if orphan.name in certain or _is_of(orphan, attempts))


def _brought(io: FileIO, path: str, references: Container[str]) -> Iterator[str]:
    for manifest in listed_by(path, io):
        if file_name(manifest.manifest_path) not in references:
            with suppress(ObjectMissing):
                yield from [file_name(entry.data_file.file_path) for entry in live_entries(io, manifest)]


def _brought_back(table: ArchiveTable) -> frozenset[str]:
    return frozenset(
        file_name(entry.data_file.file_path)
        for snapshot in table.iceberg.metadata.snapshots
        if keys.REFILLED in summary_of(snapshot)
        for manifest in manifests_of(table.iceberg, snapshot)
        if manifest.added_snapshot_id == snapshot.snapshot_id
        for entry in live_entries(table.io, manifest)
        if entry.status == ManifestEntryStatus.ADDED
    )


def _is_young(each: Orphan, since_ms: int | None) -> bool:
    """Files that a rewrite replaced were in the table."""
    name = DataFileName.parse(each.name)
    if name is None or since_ms is None or each.kind is OrphanKind.REPLACED:
        return False
    return name.created_ms > since_ms


def _is_of(each: Orphan, attempts: set[UUID]) -> bool:
    name = ManifestName.of(each.name)
    return name is not None and name.uuid in attempts


def _unbroken(metadata: TableMetadata, last: int) -> dict[int, Snapshot]:
    snapshots = {snapshot.sequence_number: snapshot for snapshot in metadata.snapshots}
    chain: dict[int, Snapshot] = {}
    at = last
    while at > 0 and at in snapshots:
        chain[at] = snapshots[at]
        at -= 1
    return chain


def _since_ms(unbroken: dict[int, Snapshot], last: int) -> int | None:
    """Since when no snapshot has expired, in ms since 1970. 0 if none ever has, None if the last one has."""
    if len(unbroken) == last:
        return 0
    return unbroken[min(unbroken)].timestamp_ms + CLOCKS_APART_MS if unbroken else None


def _sequence_of(io: FileIO, path: str) -> int | None:
    try:
        with AvroFile[ManifestFile](io.new_input(path)) as reader:
            text = str(reader.header.meta.get(_SEQUENCE, ""))
    except (OSError, ValueError, EOFError) as error:
        failure = storage_error(error, verb="read", path=path)
        if failure.retryable:
            raise failure from error
        return None
    return int(text) if text.isdecimal() else None
