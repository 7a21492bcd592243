"""Compares proven records with the brokers' records: digests first, then records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np
import pyarrow as pa

from archiver.archive.partition_scan import PartitionScan
from archiver.archive.records import ASSEMBLED
from archiver.archive.table_files import TableFile
from archiver.errors import AccessDenied, DataLoss, SourceError
from archiver.kafka import BrokerClient, PartitionFetcher
from archiver.kafka.admin import ClusterAdmin
from archiver.storage.segment import RowRange
from archiver.topics.divergence import Differences, differences
from archiver.upkeep.verify.file import VerifyTarget
from archiver.upkeep.verify.findings import Fault, FaultKind
from archiver.upkeep.verify.tally import TallyCut
from archiver.wire import DecodedBatches
from archiver.wire.record_digest import RecordDigest
from catalog.model import TopicRow
from schema_mapping.errors import ContextError

TASK_ROWS: Final = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """`starts` are log starts. `is_compacted` is None if unknown."""

    topic_id: UUID | None
    starts: Mapping[int, int]
    is_compacted: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenCut:
    """`files` may have some of the records."""

    cut: TallyCut
    rows: int
    digest: str
    files: tuple[TableFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareTask:
    target: VerifyTarget
    kafka: Mapping[str, str]
    topic_id: UUID | None
    is_compacted: bool | None
    cuts: tuple[ProvenCut, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """`compacted` counts archived records that a compacted log no longer has.

    `is_retired` if the log's retention removed cuts during the comparison.
    """

    rows: int
    compacted: int = 0
    is_retired: bool = False
    faults: tuple[Fault, ...] = ()


def log_state(kafka: Mapping[str, str], archived: TopicRow, partitions: Sequence[int]) -> LogState | Fault:
    """Return a fault if the topic isn't the archived one. Raises SourceError."""
    topic = archived.topic
    with BrokerClient(kafka) as brokers:
        if (cluster_id := brokers.cluster_id()) != archived.cluster_id:
            return Fault(
                kind=FaultKind.KAFKA,
                message=f"these are another cluster's brokers ({cluster_id}, archived was {archived.cluster_id}): check"
                " bootstrap.servers in [kafka]",
            )
        described = brokers.describe([topic])[topic]
        if None not in (archived.topic_id, described.topic_id) and archived.topic_id != described.topic_id:
            return Fault(
                kind=FaultKind.KAFKA,
                message="the topic was deleted and created again since it was archived: its offsets mean other records",
            )
        existing = sorted(set(partitions) & set(described.partitions))
        starts = brokers.list_offsets(topic, existing, "earliest")
    try:
        with ClusterAdmin(kafka) as admin:
            policy: bool | None = "compact" in admin.topic_settings(topic).get("cleanup.policy", "")
    except AccessDenied:
        policy = None
    return LogState(topic_id=described.topic_id, starts=starts, is_compacted=policy)


def compare_cuts(task: CompareTask) -> Compared:
    """Raise SourceError if the brokers don't answer."""
    faults: list[Fault] = []
    rows = compacted = 0
    topic = task.target.topic
    first = task.cuts[0].cut
    with PartitionFetcher(task.kafka, topic, task.topic_id, first.partition) as fetcher:
        for cut in task.cuts:
            try:
                done = _compared(fetcher, task, cut)
            except DataLoss as error:
                if _is_retired(error):
                    return Compared(rows=rows, compacted=compacted, is_retired=True, faults=tuple(faults))
                faults.append(_fault(cut.cut, str(error)))
                break
            rows += cut.rows
            compacted += done.compacted
            faults += done.faults
    return Compared(rows=rows, compacted=compacted, faults=tuple(faults))


def tasks_of(
    cuts: Sequence[ProvenCut], target: VerifyTarget, kafka: Mapping[str, str], state: LogState
) -> Iterator[CompareTask]:
    """Leave out cuts whose start the log no longer has."""
    group: list[ProvenCut] = []
    for cut in sorted(cuts, key=lambda proven: proven.cut):
        start = state.starts.get(cut.cut.partition)
        if start is None or cut.cut.start_offset < start:
            continue
        is_full = sum(member.rows for member in group) + cut.rows > TASK_ROWS
        if group and (is_full or group[0].cut.partition != cut.cut.partition):
            yield _task(group, target, kafka, state)
            group = []
        group.append(cut)
    if group:
        yield _task(group, target, kafka, state)


def failed(task: CompareTask, error: ContextError | None) -> Fault:
    first, last = task.cuts[0].cut, task.cuts[-1].cut
    whole = TallyCut(partition=first.partition, start_offset=first.start_offset, end_offset=last.end_offset)
    return _fault(whole, f"the log couldn't be read: {error}")


def _task(group: Sequence[ProvenCut], target: VerifyTarget, kafka: Mapping[str, str], state: LogState) -> CompareTask:
    return CompareTask(
        target=target,
        kafka=dict(kafka),
        topic_id=state.topic_id,
        is_compacted=state.is_compacted,
        cuts=tuple(group),
    )


def _compared(fetcher: PartitionFetcher, task: CompareTask, wanted: ProvenCut) -> Compared:
    cut = wanted.cut
    digest, rows = RecordDigest(), 0
    for piece in fetcher.batches(cut.start_offset, cut.end_offset, cut_head=True):
        records = _inside(piece.records, cut)
        digest += RecordDigest.of_fetched(records, partition=cut.partition)
        rows += records.num_rows
    if (rows, digest.text) == (wanted.rows, wanted.digest):
        return Compared(rows=rows)
    log: Iterator[DecodedBatches] = fetcher.batches(cut.start_offset, cut.end_offset, cut_head=True)
    differing = differences(
        log,
        _Archived(task.target, wanted),
        partition=cut.partition,
        start_offset=cut.start_offset,
        end_offset=cut.end_offset,
    )
    return _judged(differing, cut, task.is_compacted)


def _judged(found: Differences, cut: TallyCut, is_compacted: bool | None) -> Compared:
    if found.only_in_log or found.other or found.twice or (found.only_archived and is_compacted is False):
        return Compared(rows=0, faults=(_fault(cut, f"log and archive differ. {found.text}"),))
    if found.only_archived:
        return Compared(rows=0, compacted=len(found.only_archived))
    return Compared(rows=0, faults=(_fault(cut, "the log changed while it was compared: run it again"),))


@dataclass(frozen=True, slots=True)
class _Archived:
    target: VerifyTarget
    wanted: ProvenCut

    def __call__(self, start_offset: int, end_offset: int) -> pa.RecordBatch:
        rows = RowRange(partition=self.wanted.cut.partition, start_offset=start_offset, end_offset=end_offset)
        batches = list(PartitionScan(self.target.storage(), iter(self.wanted.files), rows))
        return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema=ASSEMBLED)


def _inside(records: pa.RecordBatch, cut: TallyCut) -> pa.RecordBatch:
    offsets = records.column("offset").to_numpy(zero_copy_only=False)
    first, last = np.searchsorted(offsets, (cut.start_offset, cut.end_offset))
    return records.slice(int(first), int(last - first))


def _is_retired(error: SourceError) -> bool:
    return "lost" in error.context and "log_end" not in error.context


def _fault(cut: TallyCut, message: str) -> Fault:
    return Fault(
        kind=FaultKind.KAFKA,
        message=message,
        partition=cut.partition,
        start_offset=cut.start_offset,
        end_offset=cut.end_offset,
    )
