"""The bounds of logs, and partitions without a leader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Self

from archiver.errors import LeaderUnavailable
from archiver.kafka.broker import BrokerClient, EpochEnd, PartitionDescription
from archiver.topics.seen_partition import SeenPartition
from archiver.topics.start_offsets import NewPartitions
from catalog.model import PartitionOffset, TranslatedRange

_NAMED: Final = 5
"""How many missing files of a partition are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBounds:
    """`ends` are of committed records."""

    starts: Mapping[int, int]
    ends: Mapping[int, int]
    epoch_ends: Mapping[int, EpochEnd]

    @classmethod
    def ask(
        cls, topic: str, partitions: Sequence[int], known: Mapping[int, PartitionOffset], brokers: BrokerClient
    ) -> Self:
        """Includes the end of the last archived epoch."""
        epochs = _epochs(partitions, known)
        return cls(
            starts=brokers.list_offsets(topic, partitions, "earliest"),
            ends=brokers.list_offsets(topic, partitions, "latest_stable"),
            epoch_ends=brokers.end_of_epoch(topic, epochs) if epochs else {},
        )

    @classmethod
    def ask_at_once(
        cls,
        wanted: Mapping[str, Sequence[int]],
        known: Mapping[str, Mapping[int, PartitionOffset]],
        brokers: BrokerClient,
    ) -> dict[str, Self]:
        """One request per leader. Topics without an answer are left out."""
        starts = brokers.list_offsets_at_once(wanted, "earliest")
        ends = brokers.list_offsets_at_once({topic: wanted[topic] for topic in starts}, "latest_stable")
        epochs = {topic: _epochs(wanted[topic], known[topic]) for topic in ends}
        epoch_ends = brokers.end_of_epoch_at_once({topic: asked for topic, asked in epochs.items() if asked})
        return {
            topic: cls(starts=starts[topic], ends=ends[topic], epoch_ends=epoch_ends.get(topic, {}))
            for topic, asked in epochs.items()
            if topic in epoch_ends or not asked
        }

    def seen(
        self,
        partition: int,
        known: PartitionOffset | None,
        start: int | None,
        *,
        missing: Sequence[TranslatedRange] = (),
    ) -> SeenPartition:
        """Without a verdict on its log."""
        return SeenPartition(
            partition=partition,
            log_start=self.starts[partition],
            last_stable=self.ends[partition],
            known=known,
            start=start,
            missing=_files(missing, partition),
        )

    def new(self, known: Mapping[int, PartitionOffset], described: Mapping[int, PartitionDescription]) -> NewPartitions:
        return NewPartitions(
            log_starts={partition: offset for partition, offset in self.starts.items() if partition not in known},
            log_ends={partition: offset for partition, offset in self.ends.items() if partition not in known},
            leaderless={
                partition: description
                for partition, description in described.items()
                if partition not in {*known, *self.starts}
            },
        )


def no_leaders(
    topic: str, described: Mapping[int, PartitionDescription], known: Mapping[int, PartitionOffset]
) -> dict[int, LeaderUnavailable]:
    """Includes leaders deposed before the archived records were written."""
    errors: dict[int, LeaderUnavailable] = {}
    for partition, description in sorted(described.items()):
        archived_in = known[partition].leader_epoch if partition in known else -1
        if description.leader is None:
            errors[partition] = LeaderUnavailable(
                "The partition has no leader now: its brokers are down, or an election is under way",
                topic=topic,
                partition=partition,
            )
        elif -1 < description.leader_epoch < archived_in:
            errors[partition] = LeaderUnavailable(
                "The broker that was asked names a leader of the past: it is cut off from its cluster, or lags behind. "
                "Where the cluster was restored from a backup, docs/troubleshooting.md says what to do",
                topic=topic,
                partition=partition,
                leader_epoch=description.leader_epoch,
                archived_leader_epoch=archived_in,
            )
    return errors


def _epochs(partitions: Iterable[int], known: Mapping[int, PartitionOffset]) -> dict[int, int]:
    return {
        partition: known[partition].leader_epoch
        for partition in partitions
        if partition in known and known[partition].leader_epoch >= 0
    }


def _files(missing: Sequence[TranslatedRange], partition: int) -> tuple[str, ...]:
    paths = (file.path for range_ in missing if range_.partition == partition for file in range_.files)
    return tuple(islice(paths, _NAMED))
