"""Commit a refill in one snapshot, once, and set the head. It asserts the planned snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from catalog.digests import DIGEST_ALGORITHM, add_digests
from catalog.iceberg import properties as keys
from catalog.iceberg.append import Attempt, attempt_of, data_file, evolve, head_text
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Backoff, LandedCommit, Load, Send, Unresolved, commit_once
from catalog.iceberg.light_transaction import LightTransaction
from catalog.iceberg.offsets import encode_offsets
from catalog.iceberg.producers import merge_append
from catalog.iceberg.schema_change import SchemaChange
from catalog.model import DataFileInfo, PartitionOffset
from catalog.offset_range import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Refill:
    """`erased` and `lost` offsets stay gone. `parent` was planned on. `heals` if no row is missing afterwards."""

    commit_id: str
    parent: int | None
    files: tuple[DataFileInfo, ...] = ()
    refilled: tuple[OffsetRange, ...] = ()
    erased: tuple[OffsetRange, ...] = ()
    lost: tuple[OffsetRange, ...] = ()
    heals: bool = True
    offsets: Mapping[int, PartitionOffset] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refilled:
    commit_id: str
    snapshot_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAnew:
    """The table changed since planning. Plan again."""


RefillOutcome: TypeAlias = Refilled | PlannedAnew | Unresolved


def commit_refill(
    *, load: Load, send: Send, refill: Refill, change: SchemaChange | None, backoff: Backoff
) -> RefillOutcome:
    """Raises like `catalog.iceberg.commit.commit`."""

    def changed(table: ArchiveTable) -> PlannedAnew | None:
        return None if table.snapshot_id == refill.parent else PlannedAnew()

    done = commit_once(
        load=load,
        send=send,
        obstacle=changed,
        attempt=partial(prepare_refill, refill=refill, change=change),
        commit_id=refill.commit_id,
        backoff=backoff,
    )
    if not isinstance(done, LandedCommit):
        return done
    return Refilled(commit_id=refill.commit_id, snapshot_id=done.snapshot_id)


def prepare_refill(table: ArchiveTable, *, refill: Refill, change: SchemaChange | None) -> Attempt:
    transaction = LightTransaction(table.iceberg)
    properties = evolve(transaction, table, change)
    if refill.offsets:
        properties[keys.OFFSETS] = encode_offsets(refill.offsets)
    summary = {keys.COMMIT_ID: refill.commit_id, keys.REFILLED: _told(refill), **_digest(refill.files)}
    producer = merge_append(transaction, summary, table.lists)
    if refill.heals:
        properties[keys.HEAD] = head_text(table, producer)
    for file in refill.files:
        producer.append_data_file(data_file(table, file, is_staged=False, is_sorted=file.is_sorted))
    return attempt_of(table, transaction, producer, properties)


def _told(refill: Refill) -> str:
    """`archiver.refilled`: `{"refilled":{"<partition>":[<start>,<end>,…]},"erased":…,"lost":…}`."""
    parts = {"refilled": refill.refilled, "erased": refill.erased, "lost": refill.lost}
    return json.dumps({name: _edges(spans) for name, spans in parts.items() if spans}, separators=(",", ":"))


def _edges(ranges: Sequence[OffsetRange]) -> dict[str, list[int]]:
    by_partition: dict[str, list[int]] = {}
    for offsets in sorted(ranges):
        edges = by_partition.setdefault(str(offsets.partition), [])
        if edges and edges[-1] == offsets.first:
            edges[-1] = offsets.end
        else:
            edges.extend((offsets.first, offsets.end))
    return by_partition


def _digest(files: Sequence[DataFileInfo]) -> dict[str, str]:
    digest = add_digests(file.digest for file in files)
    return {} if digest is None else {keys.DIGEST: digest, keys.DIGEST_ALGORITHM: DIGEST_ALGORITHM}
