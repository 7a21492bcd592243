"""Rows that engines leave out because of earlier partition specs."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.manifest import ManifestFile
from pyiceberg.table.snapshots import Snapshot

from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.hidden_values import HiddenValues, hidden_values


def hidden_rows(table: ArchiveTable) -> tuple[str, ...]:
    """Raises StorageError."""

    def manifests(snapshot: Snapshot) -> Iterable[ManifestFile]:
        from archiver.archive.manifests import manifests_of  # few tables need it, and it takes time to import

        return manifests_of(table.iceberg, snapshot)

    return tuple(_remark(table.topic.topic, value) for value in hidden_values(table.iceberg.metadata, manifests))


def _remark(topic: str, hidden: HiddenValues) -> str:
    width = hidden.transform.removeprefix("truncate[").removesuffix("]")
    term = f"truncate({width}, {hidden.column})"
    first = -hidden.low
    last = first + hidden.high - hidden.low
    values = f"{hidden.low} to {hidden.high} ({first} to {last} of an unsigned field)"
    files = "the table has" if hidden.is_current else "files of an earlier partitioning have"
    moved = f"`archiver compact {topic} --repartition`"
    cure = (
        "set `partition_by` to a width that is a power of two, to the column itself or to bucket, then run `archiver "
        f"repartition {topic}` and {moved}"
        if hidden.is_current
        else f"run {moved}"
    )
    return (
        f"{files} `{term}` as a partition: engines that filter by {hidden.column} leave out rows with the values "
        f"{values}. Replays and queries without such a filter have them. To have them found, {cure}"
    )
