"""When a file ends, as a pure decision: at its target size, or where the time partition changes.

Within a file `ingest_timestamp` never falls: it is the running maximum of the clock's times, begun anew with each
file, so that what dragged one file into a late partition doesn't drag the next. The schema is constant over a range.
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
    """Consecutive batches of a group, `first` up to and without `end`, that go to one file.

    `times` are their `ingest_timestamp`s in ms; `new_partition` says that the file open so far ends before this run.
    """

    first: int
    end: int
    times: Int64Array
    partition_value: int
    new_partition: bool


class Rotation:
    """Follows a range's batches and says which file each goes to."""

    __slots__ = ("_latest", "_open", "_target_bytes", "_unit")

    def __init__(self, *, partition_by: PartitionBy, target_bytes: int) -> None:
        self._unit = partition_by
        self._target_bytes = target_bytes
        self._open: int | None = None
        self._latest = 0

    def runs(self, times: Int64Array) -> Iterator[BatchRun]:
        """Runs of the batches with these times, as the clock gave them; `end_if_full` may be called after each."""
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
        """Whether the open file, of this size, ends here; the next run then begins another, whatever its partition."""
        if size_bytes < self._target_bytes:
            return False
        self._open = None
        return True


def partition_values(times: Int64Array, partition_by: PartitionBy) -> Int64Array:
    """The time partition of each time (ms): hours, days or months since 1970, as Iceberg's transforms count them."""
    unit = {"hour": "h", "day": "D", "month": "M"}[partition_by]
    return times.astype("datetime64[ms]").astype(f"datetime64[{unit}]").astype(np.int64)


def partition_folder(partition_name: str, partition_value: int, partition_by: PartitionBy) -> str:
    """The folder of a partition as Iceberg's writers name it: `ingest_day=2026-01-02`; hours as `2026-01-02-15`."""
    unit = {"hour": "h", "day": "D", "month": "M"}[partition_by]
    text = str(np.array(partition_value, f"datetime64[{unit}]"))
    return f"{partition_name}={text.replace('T', '-')}"
