"""The first offsets that a retention aims at, by ingest timestamp (ADR 0045).

A producer's wild timestamp neither removes early nor keeps for ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from archiver.archive.table_files import TableFile
from catalog.model import PartitionOffset

MICROS: int = 1_000
END: int = 2**62
"""An offset beyond all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireLimits:
    """Records before `time_ms` or `offset`, and the oldest beyond `size_bytes` per partition.

    Empty `partitions` means all.
    """

    time_ms: int | None = None
    offset: int | None = None
    size_bytes: int | None = None
    partitions: frozenset[int] = frozenset()

    @property
    def is_none(self) -> bool:
        return self.time_ms is None and self.offset is None and self.size_bytes is None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireCut:
    """The limits retire no record from `offset` on."""

    partition: int
    offset: int


def whole_file_cuts(
    limits: RetireLimits, files: Collection[TableFile], offsets: Mapping[int, PartitionOffset]
) -> dict[int, int]:
    """Retire whole files only. A file without bounds keeps everything."""
    chosen = {
        partition: reached.next_offset
        for partition, reached in offsets.items()
        if not limits.partitions or partition in limits.partitions
    }
    cuts: dict[int, int] = {}
    by_partition = _by_partition(files, chosen)
    for partition, end in chosen.items():
        own_files = by_partition[partition]
        candidates = [0]
        if limits.offset is not None:
            candidates.append(min(limits.offset, end))
        if limits.time_ms is not None:
            young = [_low(file) for file in own_files if _is_young(file, limits.time_ms * MICROS)]
            candidates.append(min(young, default=end))
        if limits.size_bytes is not None:
            candidates.append(_by_size(own_files, limits.size_bytes, end))
        if max(candidates) > 0:
            cuts[partition] = max(candidates)
    return cuts


def reach_of(cuts: Mapping[int, int], files: Iterable[TableFile], partitions: Collection[int]) -> dict[int, int]:
    """Return end offsets of files that begin below the cuts.

    `partitions` must be all of the topic: foreign files mix them, and each row must be accounted for.
    """
    reached = dict(cuts)
    for file in files:
        at = file.partitions
        holding = [partition for partition in partitions if at is None or at.low <= partition <= at.high]
        if any(_low(file) < cuts[partition] for partition in holding if partition in cuts):
            end = END if file.offsets is None else file.offsets.high + 1
            for partition in holding:
                reached[partition] = max(reached.get(partition, 0), end)
    return reached


def _by_partition(files: Iterable[TableFile], chosen: Collection[int]) -> dict[int, list[TableFile]]:
    by_partition: dict[int, list[TableFile]] = defaultdict(list)
    for file in files:
        at = file.partitions
        numbers = chosen if at is None else (number for number in chosen if at.low <= number <= at.high)
        for partition in numbers:
            by_partition[partition].append(file)
    for group in by_partition.values():
        group.sort(key=_low)
    return by_partition


def _by_size(files: Iterable[TableFile], most: int, end: int) -> int:
    oldest_first = list(files)
    total = sum(map(_share, oldest_first))
    for file in oldest_first:
        if total - _share(file) < most:
            return _low(file)
        total -= _share(file)
    return end


def _share(file: TableFile) -> int:
    """Files of several partitions count in equal parts."""
    at = file.partitions
    return file.size_bytes // (1 if at is None else at.high - at.low + 1)


def _is_young(file: TableFile, before_micros: int) -> bool:
    return file.latest_ingest is None or file.latest_ingest >= before_micros


def _low(file: TableFile) -> int:
    return file.offsets.low if file.offsets else 0
