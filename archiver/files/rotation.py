"""Decides where a file ends: at its target size, or where the time partition changes. It does no I/O.

Within a file `ingest_timestamp` never falls: it is the running maximum of the clock's times. The maximum starts anew
with each file, so a late time that moved one file to a later partition doesn't move the next file too. The schema is
constant over a range. The end of the range ends the last file: `RangeWriter.end`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

import numpy as np

from archiver.wire.columns import Int64Array

PartitionBy: TypeAlias = Literal["hour", "day", "month"]


class EndReason(StrEnum):
    """Why a file ended."""

    TARGET_SIZE = "target_size"
    TIME_PARTITION = "time_partition"
    RANGE_END = "range_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRun:
    """Consecutive batches of a group that go to one file: indexes `first` up to `end`, which is not included.

    `times` are their `ingest_timestamp`s in ms. With `new_partition`, the open file ends before this run.
    """

    first: int
    end: int
    times: Int64Array
    partition_value: int
    new_partition: bool


class Rotation:
    """Assigns the batches of one range to files, in order."""

    __slots__ = ("_latest", "_open", "_target_bytes", "_unit")

    def __init__(self, *, partition_by: PartitionBy, target_bytes: int) -> None:
        self._unit = partition_by
        self._target_bytes = target_bytes
        self._open: int | None = None
        self._latest = 0

    def runs(self, times: Int64Array) -> Iterator[BatchRun]:
        """Yield the runs of batches with these times of the clock. `end_if_full` may be called after each run."""
        first = 0
        while first < len(times):
            floor = times[first] if self._open is None else self._latest
            latest = np.maximum(np.maximum.accumulate(times[first:]), floor)
            values = partition_values(latest, self._unit)
            changed = self._open is not None and int(values[0]) != self._open
            self._open = int(values[0])
            length = int(np.searchsorted(values, self._open, side="right"))
            self._latest = int(latest[length - 1])
            yield BatchRun(
                first=first,
                end=first + length,
                times=latest[:length],
                partition_value=self._open,
                new_partition=changed,
            )
            first += length

    def end_if_full(self, size_bytes: int) -> bool:
        """Whether the open file has its target size and ends here; the next run then starts a new file."""
        if size_bytes < self._target_bytes:
            return False
        self._open = None
        return True


def partition_values(times: Int64Array, partition_by: PartitionBy) -> Int64Array:
    """The time partition of each time (ms): hours, days or months since 1970, counted as Iceberg's transforms do."""
    unit = {"hour": "h", "day": "D", "month": "M"}[partition_by]
    return times.astype("datetime64[ms]").astype(f"datetime64[{unit}]").astype(np.int64)


def partition_folder(partition_name: str, partition_value: int, partition_by: PartitionBy) -> str:
    """The folder of a partition, named as Iceberg's writers do: `ingest_day=2026-01-02`, with hours `2026-01-02-15`."""
    unit = {"hour": "h", "day": "D", "month": "M"}[partition_by]
    text = str(np.array(partition_value, f"datetime64[{unit}]"))
    return f"{partition_name}={text.replace('T', '-')}"
