"""The first bytes of a column's values, for numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view

Bytes: TypeAlias = npt.NDArray[np.uint8]
Numbers: TypeAlias = npt.NDArray[np.int64]

WINDOW: Final = 8


@dataclass(frozen=True, slots=True)
class ValueHeads:
    """Compare `sizes` first: other bytes follow a value shorter than its window."""

    starts: Numbers
    sizes: Numbers
    data: Bytes
    heads: Bytes

    @classmethod
    def of(cls, values: pa.BinaryArray) -> Self:
        kind = np.int64 if pa.types.is_large_binary(values.type) else np.int32
        _, offsets, buffer = values.buffers()
        if offsets is None or len(values) == 0:
            nothing = np.zeros(len(values), dtype=np.int64)
            return cls(nothing, nothing, np.zeros(0, np.uint8), np.zeros((len(values), WINDOW), np.uint8))
        ends = np.frombuffer(offsets, dtype=kind)[values.offset : values.offset + len(values) + 1].astype(np.int64)
        data = np.zeros(0, dtype=np.uint8) if buffer is None else np.frombuffer(buffer, dtype=np.uint8)
        return cls(ends[:-1], np.diff(ends), data, _windows(data, ends[:-1]))

    def numbers_at(self, place: int) -> npt.NDArray[np.uint32]:
        return np.ascontiguousarray(self.heads[:, place : place + 4]).view(">u4")[:, 0].astype(np.uint32)

    def bytes_at(self, rows: Numbers, place: int, count: int) -> Bytes:
        """The values must have `place + count` bytes."""
        gathered: Bytes = self.data[(self.starts[rows] + place)[:, np.newaxis] + np.arange(count)]
        return gathered

    def byte_at(self, rows: Numbers, place: int) -> Bytes:
        return self.heads[rows, place] if place < WINDOW else self.bytes_at(rows, place, 1)[:, 0]

    def head(self, row: int, most: int) -> bytes:
        start = int(self.starts[row])
        return self.data[start : start + min(int(self.sizes[row]), most)].tobytes()

    def begin_with(self, head: bytes, rows: Numbers) -> npt.NDArray[np.bool_]:
        starts = self.starts[rows]
        same = self.sizes[rows] >= len(head)
        for index, byte in enumerate(head):
            candidates = np.flatnonzero(same)
            same[candidates] = self.data[starts[candidates] + index] == byte
        return same


def _windows(data: Bytes, starts: Numbers) -> Bytes:
    last = len(data) - WINDOW
    if last >= 0 and (starts <= last).all():
        return sliding_window_view(data, WINDOW)[starts]
    padded = np.concatenate([data[max(last, 0) :], np.zeros(WINDOW, dtype=np.uint8)])
    heads = np.zeros((len(starts), WINDOW), dtype=np.uint8)
    late = starts > last
    if last >= 0:
        heads[~late] = sliding_window_view(data, WINDOW)[starts[~late]]
    heads[late] = sliding_window_view(padded, WINDOW)[starts[late] - max(last, 0)]
    return heads
