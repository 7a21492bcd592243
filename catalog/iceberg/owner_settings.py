"""Owner settings that meet the archiver's, in words: which wins, which is ignored."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pyiceberg.table.update import SetPropertiesUpdate, TableUpdate

from catalog.iceberg.deletion_gate import GC_ENABLED, is_shared
from catalog.iceberg.owner_retention import MAX_AGE, MIN_SNAPSHOTS, OwnerRetention
from catalog.iceberg.properties import DELETE_OLD_METADATA

if TYPE_CHECKING:
    from catalog.iceberg.archive_table import ArchiveTable
    from catalog.iceberg.expiry import SnapshotRetention

OBJECT_STORAGE: Final = "write.object-storage.enabled"
_FORMER_PATHS: Final = ("write.folder-storage.path", "write.object-storage.path")
_PROVIDER: Final = "write.location-provider.impl"

_LOG = logging.getLogger(__name__)


def owner_remarks(table: ArchiveTable, retention: SnapshotRetention) -> tuple[str, ...]:
    return (*_of_files(table.properties), *_of_snapshots(table, retention), *_of_paths(table))


def warn_once(table: ArchiveTable, retention: SnapshotRetention, logged: set[str]) -> None:
    for remark in owner_remarks(table, retention):
        if (line := f"{table.topic.table}: {remark}") not in logged:
            logged.add(line)
            _LOG.warning("%s", line)


def keeping_old_metadata(properties: Mapping[str, str]) -> tuple[TableUpdate, ...]:
    """Keep old metadata files if the owner forbids deleting files: catalogs delete them despite `gc.enabled`."""
    if is_shared(properties) and properties.get(DELETE_OLD_METADATA, "false").lower() == "true":
        return (SetPropertiesUpdate(updates={DELETE_OLD_METADATA: "false"}),)
    return ()


def _of_files(properties: Mapping[str, str]) -> Iterator[str]:
    if is_shared(properties):
        yield (
            f"`{GC_ENABLED}` is `{properties[GC_ENABLED]}`: no file of the table is deleted, no snapshot expires, and"
            " `archiver erase` is refused. Metadata and storage grow until it is `true`"
        )


def _of_snapshots(table: ArchiveTable, retention: SnapshotRetention) -> Iterator[str]:
    owner = OwnerRetention.of(table.iceberg.metadata)
    for key, value in owner.unreadable.items():
        yield f"`{key}` is {value!r}, which is no number: no snapshot expires until it is one"
    if owner.age_ms is not None:
        message = f"`{MAX_AGE}` is {owner.age_ms} ({_seconds(owner.age_ms / 1_000)}) and `snapshot_retention` is"
        message = f"{message} {_seconds(retention.seconds)}"
        if owner.age_ms > retention.seconds * 1_000:
            yield f"{message}: the table's property wins, as it keeps snapshots longer"
        elif owner.age_ms < retention.seconds * 1_000:
            yield f"{message}: `snapshot_retention` wins, as it keeps snapshots longer"
    if owner.least is not None and owner.least > retention.keep:
        yield (
            f"`{MIN_SNAPSHOTS}` is {owner.least}, and the archiver keeps the newest {retention.keep} snapshots that are"
            f" older than `snapshot_retention` = {_seconds(retention.seconds)}: the table's property wins, and the"
            " table's metadata grows with it"
        )


def _of_paths(table: ArchiveTable) -> Iterator[str]:
    properties = table.properties
    if properties.get(OBJECT_STORAGE, "false").lower() == "true":
        yield (
            f"`{OBJECT_STORAGE}` is `{properties[OBJECT_STORAGE]}`: the archiver doesn't spread its files by hashes. It"
            f" writes them below {table.data_location}, by partition"
        )
    for key in _FORMER_PATHS:
        if key in properties and properties[key].rstrip("/") != table.data_location:
            yield (
                f"`{key}` is `{properties[key]}`: the archiver doesn't follow it, and writes data files below"
                f" {table.data_location}. Set `write.data.path`, which it follows"
            )
    if _PROVIDER in properties:
        yield (
            f"`{_PROVIDER}` is `{properties[_PROVIDER]}`: the archiver doesn't follow it, and writes data files below"
            f" {table.data_location}"
        )


def _seconds(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{seconds:g}s"
