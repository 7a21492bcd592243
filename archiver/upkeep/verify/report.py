"""The report of a verification, and its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from typing import Any, TypeAlias

from archiver.audit.signing import canonical
from archiver.observer import Observer
from archiver.upkeep.verify.findings import Fault, Gap, Proven
from catalog.digests import DIGEST_ALGORITHM, digest_text


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedPartition:
    """Spans in `proven` are joined. Offsets are half-open."""

    partition: int
    end_offset: int
    proven: tuple[Proven, ...]
    gaps: tuple[Gap, ...]

    @property
    def rows(self) -> int:
        return sum(span.rows for span in self.proven)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedTopic:
    """`sources` says what was read, `resumed_files` by an earlier run.

    `moved_rows` are proven records in foreign files. `compared_rows` is None without brokers.
    """

    topic: str
    table: str
    cluster_id: str
    topic_id: str
    table_uuid: str
    snapshot_id: int | None
    sources: Mapping[str, str]
    partitions: tuple[VerifiedPartition, ...]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()
    files: int = 0
    size_bytes: int = 0
    resumed_files: int = 0
    moved_rows: int = 0
    compared_rows: int | None = None
    seconds: float = 0.0

    @property
    def succeeded(self) -> bool:
        return not self.faults

    @property
    def rows(self) -> int:
        return sum(partition.rows for partition in self.partitions)

    @property
    def digest(self) -> str:
        """Of all proven records (docs/digest.md)."""
        return digest_text(sum(int(span.digest, 16) for partition in self.partitions for span in partition.proven))

    @property
    def root(self) -> str:
        """SHA-256 of the proven offsets with number and digest of their records.

        Independent of files: unchanged by a compaction.
        """
        return root_of(
            cluster_id=self.cluster_id,
            topic=self.topic,
            topic_id=self.topic_id,
            partitions={
                partition.partition: [span.to_json() for span in partition.proven] for partition in self.partitions
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFailed:
    topic: str
    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    topics: tuple[VerifiedTopic, ...]
    failed: tuple[TopicFailed, ...] = ()
    seconds: float = 0.0

    @property
    def succeeded(self) -> bool:
        return not self.failed and all(topic.succeeded for topic in self.topics)


def root_of(
    *, cluster_id: str, topic: str, topic_id: str, partitions: Mapping[int, Sequence[Mapping[str, Any]]]
) -> str:
    """As docs/verify.md defines it."""
    document = {
        "algorithm": DIGEST_ALGORITHM,
        "cluster_id": cluster_id,
        "topic": topic,
        "topic_id": topic_id,
        "proven": [
            [partition, span["start_offset"], span["end_offset"], span["rows"], span["digest"]]
            for partition, spans in sorted(partitions.items())
            for span in spans
        ],
    }
    return sha256(canonical(document)).hexdigest()


def partitions_of(
    ends: Mapping[int, int], proven: Iterable[Proven], gaps: Iterable[Gap]
) -> tuple[VerifiedPartition, ...]:
    by_partition: dict[int, tuple[list[Proven], list[Gap]]] = {partition: ([], []) for partition in ends}
    for span in proven:
        by_partition.setdefault(span.partition, ([], []))[0].append(span)
    for gap in gaps:
        by_partition.setdefault(gap.partition, ([], []))[1].append(gap)
    return tuple(
        VerifiedPartition(
            partition=partition,
            end_offset=ends.get(partition, 0),
            proven=tuple(_joined_proven(spans)),
            gaps=tuple(_joined_gaps(holes)),
        )
        for partition, (spans, holes) in sorted(by_partition.items())
    )


def _joined_proven(proven: Iterable[Proven]) -> Iterable[Proven]:
    last: list[Proven] = []
    for span in sorted(proven, key=lambda span: span.start_offset):
        if last and (last[-1].end_offset, last[-1].proof) != (span.start_offset, span.proof):
            yield _sum(last)
            last = []
        last.append(span)
    if last:
        yield _sum(last)


def _sum(proven: Sequence[Proven]) -> Proven:
    return Proven(
        partition=proven[0].partition,
        start_offset=proven[0].start_offset,
        end_offset=proven[-1].end_offset,
        rows=sum(span.rows for span in proven),
        digest=digest_text(sum(int(span.digest, 16) for span in proven)),
        proof=proven[0].proof,
    )


def _joined_gaps(gaps: Iterable[Gap]) -> Iterable[Gap]:
    ordered = sorted(gaps, key=lambda gap: (gap.kind, gap.start_offset))
    merged: list[Gap] = []
    for _, group in groupby(ordered, key=lambda gap: gap.kind):
        first = True
        for gap in group:
            if not first and merged[-1].end_offset == gap.start_offset:
                merged[-1] = Gap(
                    kind=gap.kind,
                    partition=gap.partition,
                    start_offset=merged[-1].start_offset,
                    end_offset=gap.end_offset,
                    count=merged[-1].count + gap.count,
                )
            else:
                merged.append(gap)
            first = False
    return sorted(merged, key=lambda gap: (gap.start_offset, gap.kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPlanned:
    """`resumed` more files were proven by an earlier run."""

    topic: str
    files: int
    size_bytes: int
    resumed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesVerified:
    topic: str
    files: int
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultFound:
    topic: str
    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCompared:
    topic: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicVerified:
    report: VerifiedTopic


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyFinished:
    """`paths` are the files of the report."""

    report: VerifyReport
    paths: tuple[str, ...] = ()
    is_signed: bool = False


VerifyEvent: TypeAlias = (
    VerifyPlanned | FilesVerified | FaultFound | KafkaCompared | TopicVerified | TopicFailed | VerifyFinished
)

VerifyObserver: TypeAlias = Observer[VerifyEvent]
