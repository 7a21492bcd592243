"""Read manifest lists, and detect truncated ones.

A cut between blocks shows only in the summary: `manifests-created` plus `manifests-kept`, or totals of files, if the
parent's list agrees with its totals or has none. Undetected: multi-block lists without any of these.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Final, cast

from pyiceberg.exceptions import ResolveError
from pyiceberg.io import FileIO, InputFile
from pyiceberg.manifest import (
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from catalog.errors import MetadataDamaged
from catalog.iceberg.avro_blocks import records_of
from catalog.iceberg.avro_files import ManifestListFile
from catalog.iceberg.lineage import summary_of

CREATED: Final = "manifests-created"
KEPT: Final = "manifests-kept"
_DUPLICATES: Final = "deleted-duplicate-files"
"""Entries that Iceberg's Java library took out without counting them: totals are too high from then on."""
_TOTALS: Final = {ManifestContent.DATA: "total-data-files", ManifestContent.DELETES: "total-delete-files"}

UNREADABLE: Final = (ValueError, EOFError, zlib.error, LookupError, TypeError, SystemError, ResolveError)
"""What pyiceberg's decoder raises when bytes are damaged."""


class BytesFile:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def open(self, seekable: bool = True) -> BytesIO:  # noqa: ARG002 - InputFile's
        return BytesIO(self._content)


class _OneFile:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def new_input(self, location: str) -> BytesFile:  # noqa: ARG002 - FileIO's
        return BytesFile(self._content)


def whole(io: FileIO, path: str) -> bytes:
    """Raises ConnectionError if bytes are missing."""
    with io.new_input(path).open() as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        content = stream.read(size)
    if len(content) != size:
        raise ConnectionError(f"the store gave {len(content)} of {size} bytes")
    return bytes(content)


def manifest_list(io: FileIO, path: str) -> list[ManifestFile]:
    """Raises MetadataDamaged for a cut within a block, and errors of `io`."""
    content = whole(io, path)
    records = records_of(content, path)
    try:
        manifests = ManifestListFile.read(cast("InputFile", BytesFile(content)))
    except UNREADABLE as error:
        msg = "a manifest list can't be read; restore it from a backup or the store's versions"
        raise MetadataDamaged(msg, file=path, cause=str(error)) from error
    if len(manifests) != records:
        raise _cut_short(path, manifests=len(manifests), counted=records)
    return manifests


def manifests_of(io: FileIO, metadata: TableMetadata, snapshot: Snapshot) -> list[ManifestFile]:
    """Raises MetadataDamaged if the list is truncated, and errors of `io`."""
    manifests = manifest_list(io, snapshot.manifest_list)
    summary = summary_of(snapshot)
    created, kept = _number(summary, CREATED), _number(summary, KEPT)
    if created is not None and kept is not None:
        if len(manifests) < created + kept:
            raise _cut_short(snapshot.manifest_list, manifests=len(manifests), counted=created + kept)
        return manifests
    lacking = _lacking(manifests, summary)
    if lacking and (sure := _sure(lacking, manifests, io, metadata, snapshot)):
        raise MetadataDamaged(
            "a manifest list has fewer files than its snapshot's totals say: it was cut short, and files would "
            "be missed in silence, or the engine that wrote the snapshot counted wrong. If the store has a "
            "longer version of the list, restore it. If the list is whole, have that engine rewrite the "
            "manifests or commit again. Expire the snapshot if it is an old one; setting the table back to one "
            "before it takes records away",
            file=snapshot.manifest_list,
            snapshot=snapshot.snapshot_id,
            **{f"{name} too few": count for name, count in sure.items()},
        )
    return manifests


def manifest_content(io: FileIO, manifest: ManifestFile) -> bytes:
    """Raises MetadataDamaged if shorter than its list says, which no decoder notices. Raises like `whole`."""
    content = whole(io, manifest.manifest_path)
    if len(content) < manifest.manifest_length:
        raise manifest_cut_short(manifest, bytes=len(content), listed=manifest.manifest_length)
    return content


def entries_of(io: FileIO, manifest: ManifestFile, *, only_live: bool = True) -> list[ManifestEntry]:
    """Raises MetadataDamaged if live entries are missing."""
    content = manifest_content(io, manifest)
    try:
        entries = manifest.fetch_manifest_entry(cast("FileIO", _OneFile(content)), discard_deleted=only_live)
    except UNREADABLE as error:
        msg = "a manifest can't be read; restore it from a backup or the store's versions"
        raise MetadataDamaged(msg, file=manifest.manifest_path, cause=str(error)) from error
    check_entries(manifest, sum(entry.status != ManifestEntryStatus.DELETED for entry in entries))
    return entries


def check_entries(manifest: ManifestFile, live: int) -> None:
    """Raise MetadataDamaged if live entries are missing."""
    counted = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    if live < counted:
        raise manifest_cut_short(manifest, entries=live, counted=counted)


def manifest_cut_short(manifest: ManifestFile, **found: int) -> MetadataDamaged:
    return MetadataDamaged(
        "a manifest holds less than its list says, so files would be missed in silence: it was cut short; restore it "
        "from a backup or the store's versions; setting the table back to a snapshot without it takes records away",
        file=manifest.manifest_path,
        **found,
    )


def _lacking(manifests: Sequence[ManifestFile], told: Mapping[str, str]) -> dict[str, int]:
    if any(manifest.added_files_count is None or manifest.existing_files_count is None for manifest in manifests):
        return {}
    lacking = {}
    for content, name in _TOTALS.items():
        listed = sum(
            (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
            for manifest in manifests
            if manifest.content == content
        )
        if (total := _number(told, name)) is not None and total > listed:
            lacking[name] = total - listed
    return lacking


def _sure(
    lacking: Mapping[str, int], found: Sequence[ManifestFile], io: FileIO, metadata: TableMetadata, snapshot: Snapshot
) -> dict[str, int]:
    if any(_DUPLICATES in summary_of(snapshot) for snapshot in metadata.snapshots):
        return {}
    before = _lacking_before(lacking, io, metadata, snapshot)
    if snapshot.parent_snapshot_id is None or not found:
        before = {_TOTALS[ManifestContent.DATA]: 0} | before
    return {name: count for name, count in lacking.items() if name in before and count > before[name]}


def _lacking_before(names: Iterable[str], io: FileIO, metadata: TableMetadata, snapshot: Snapshot) -> dict[str, int]:
    parent = None if snapshot.parent_snapshot_id is None else metadata.snapshot_by_id(snapshot.parent_snapshot_id)
    if parent is None:
        return {}
    summary = summary_of(parent)
    try:
        lacking = _lacking(manifest_list(io, parent.manifest_list), summary)
    except (FileNotFoundError, MetadataDamaged):
        return {}
    return {name: lacking.get(name, 0) for name in names if _number(summary, name) is not None}


def _number(told: Mapping[str, str], name: str) -> int | None:
    value = told.get(name, "")
    return int(value) if value.isdecimal() else None


def _cut_short(path: str, **found: int) -> MetadataDamaged:
    return MetadataDamaged(
        "a manifest list was cut short, so files would be missed in silence; restore it from a backup or the store's "
        "versions; setting the table back to a snapshot before it takes records away",
        file=path,
        **found,
    )
