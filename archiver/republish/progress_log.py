"""The progress of transfers: a compacted topic, written in the data's transactions.

Every record has a unique key, so compaction keeps all: they are the offset map. Transfers may share the
topic.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa

from archiver.archive.records import RECORDS
from archiver.codecs import Codec
from archiver.errors import LeaderUnavailable, ReplayError
from archiver.kafka.broker import At, BrokerClient
from archiver.kafka.fetch import log_reader
from archiver.kafka.transactional_writer import TRANSACTION_SECONDS
from archiver.republish.batches import ProducedRecords
from archiver.republish.offset_runs import Runs

PARTITION: Final = 0
RUNS_IN_A_RECORD: Final = 10_000
_VERSION: Final = 1
_BEGUN: Final = 0
_UNBEGUN: Final = -2
_LOOK_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The same in all runs of a transfer.

    Ids detect recreated topics and tables; empty if unknown.
    """

    cluster_id: str
    topic: str
    table_id: str
    target: str
    target_id: str
    start: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A partition's first source offset."""

    partition: int
    offset: int
    course: Course


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedUpTo:
    """Selected records before `next_offset` were copied.

    `sequence` counts a partition's entries from 1. `runs` are this entry's records.
    """

    partition: int
    sequence: int
    next_offset: int
    runs: Runs


Entry: TypeAlias = Begun | MovedUpTo


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProgress:
    begun: Begun
    next_offset: int
    sequence: int

    @property
    def is_untouched(self) -> bool:
        return self.next_offset == self.begun.offset


class ProgressLog:
    def __init__(self, brokers: BrokerClient, topic: str, transfer: str) -> None:
        self.topic = topic
        self.transfer = transfer
        self._brokers = brokers

    def read(self) -> dict[int, PartitionProgress]:
        return self._progress(self.entries())

    def peek(self) -> tuple[dict[int, PartitionProgress], bool]:
        """As `read` without waiting for open transactions, and whether there are none."""
        end, stable = self._end("high_watermark"), self._end("latest_stable")
        return self._progress(self._between(self._end("earliest"), stable)), stable >= end

    @staticmethod
    def _progress(entries: Iterable[Entry]) -> dict[int, PartitionProgress]:
        progress: dict[int, PartitionProgress] = {}
        for entry in entries:
            match entry:
                case Begun():
                    progress[entry.partition] = PartitionProgress(
                        begun=entry, next_offset=entry.offset, sequence=_BEGUN
                    )
                case MovedUpTo():
                    progress[entry.partition] = PartitionProgress(
                        begun=progress[entry.partition].begun, next_offset=entry.next_offset, sequence=entry.sequence
                    )
        return progress

    def entries(self) -> Iterator[Entry]:
        """In order, after earlier transactions have ended. Raises ReplayError if the log has lost an entry."""
        stable = self._decided()
        yield from self._between(self._end("earliest"), stable)

    def _between(self, start: int, end: int) -> Iterator[Entry]:
        if start >= end:
            return
        topic_id = self._brokers.described(self.topic).topic_id
        read = log_reader(self._brokers, self.topic, topic_id)
        sequences: dict[int, int] = {}
        for piece in read(PARTITION, start, end):
            for key, value in zip(
                piece.records.column("key").to_pylist(), piece.records.column("value").to_pylist(), strict=True
            ):
                entry = self._entry(key, value)
                if entry is None:
                    continue
                if isinstance(entry, MovedUpTo) and entry.sequence != sequences.get(entry.partition, _UNBEGUN) + 1:
                    raise self._damaged(entry.partition)
                sequences[entry.partition] = _sequence(entry)
                yield entry

    def batch(self, entries: Iterable[Entry]) -> ProducedRecords:
        now = int(time.time() * 1000)
        rows = [
            {
                "partition": PARTITION,
                "offset": number,
                "timestamp_type": 0,
                "timestamp": now,
                "key": _dumped(self._key(entry)),
                "value": _dumped(_value(entry)),
                "headers": [],
            }
            for number, entry in enumerate(entries)
        ]
        return ProducedRecords(pa.RecordBatch.from_pylist(rows, RECORDS), Codec.ZSTD)

    def _decided(self) -> int:
        """Raises LeaderUnavailable if earlier transactions don't end."""
        end = self._end("high_watermark")
        deadline = time.monotonic() + 2 * TRANSACTION_SECONDS
        while (stable := self._end("latest_stable")) < end:
            if time.monotonic() > deadline:
                raise LeaderUnavailable(
                    "Another transaction in the topic of progress doesn't end: give this transfer a topic of its own "
                    "with --progress-topic, or end the transaction (kafka-transactions.sh)",
                    topic=self.topic,
                    last_stable_offset=stable,
                    high_watermark=end,
                )
            time.sleep(_LOOK_SECONDS)
        return stable

    def _end(self, at: At) -> int:
        return self._brokers.list_offsets(self.topic, (PARTITION,), at)[PARTITION]

    def _key(self, entry: Entry) -> dict[str, Any]:
        return {"transfer": self.transfer, "partition": entry.partition, "sequence": _sequence(entry)}

    def _entry(self, key: bytes | None, value: bytes | None) -> Entry | None:
        """None for another transfer's entry."""
        try:
            name = json.loads(key or b"null")
            if not isinstance(name, Mapping) or name.get("transfer") != self.transfer or value is None:
                return None
            return _entry(name, json.loads(value))
        except (ValueError, KeyError, TypeError) as error:
            raise ReplayError(
                "the topic of progress holds what no transfer of this version wrote: give another --progress-topic, or "
                "upgrade the archiver",
                topic=self.topic,
                cause=str(error),
            ) from error

    def _damaged(self, partition: int) -> ReplayError:
        return ReplayError(
            "the topic of progress has lost entries of this transfer, so nobody knows how far it came: its "
            "cleanup.policy must be `compact` alone. Begin again under another --transfer, into an empty topic",
            topic=self.topic,
            transfer=self.transfer,
            partition=partition,
        )


def entries_of(partition: int, *, after: int, next_offset: int, runs: Runs) -> Iterator[MovedUpTo]:
    """Of bounded size. `after` is the last entry's sequence."""
    pieces = [*runs.pieces(RUNS_IN_A_RECORD)] or [runs]
    for number, piece in enumerate(pieces, start=after + 1):
        is_last = number == after + len(pieces)
        reached = next_offset if is_last else int(piece.sources[-1] + piece.counts[-1])
        yield MovedUpTo(partition=partition, sequence=number, next_offset=reached, runs=piece)


def _sequence(entry: Entry) -> int:
    return entry.sequence if isinstance(entry, MovedUpTo) else _BEGUN


def _value(entry: Entry) -> dict[str, Any]:
    match entry:
        case Begun():
            return {"version": _VERSION, "offset": entry.offset, **asdict(entry.course)}
        case MovedUpTo():
            return {"version": _VERSION, "next_offset": entry.next_offset, "runs": entry.runs.to_json()}


def _entry(key: Mapping[str, Any], value: Mapping[str, Any]) -> Entry:
    if value["version"] != _VERSION:
        raise ValueError(f"version {value['version']}")
    partition, sequence = int(key["partition"]), int(key["sequence"])
    if sequence == _BEGUN:
        course = Course(**{name: str(value[name]) for name in Course.__dataclass_fields__})
        return Begun(partition=partition, offset=int(value["offset"]), course=course)
    return MovedUpTo(
        partition=partition,
        sequence=sequence,
        next_offset=int(value["next_offset"]),
        runs=Runs.from_json(value["runs"]),
    )


def _dumped(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
