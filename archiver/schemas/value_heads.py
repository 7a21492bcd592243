"""The first bytes of a column's values side by side, so that numpy compares them without a Python object for each."""

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
    """A binary column: where each value starts, how long it is, and a window of its first 8 bytes.

    The window runs on into what follows a shorter value: look at `sizes` first.
    """

    starts: Numbers
    sizes: Numbers
    data: Bytes
    heads: Bytes

    @classmethod
    def of(cls, values: pa.BinaryArray) -> Self:
        """The values of a binary or large binary array; its buffers aren't copied."""
        kind = np.int64 if pa.types.is_large_binary(values.type) else np.int32
        _, offsets, buffer = values.buffers()
        if offsets is None or len(values) == 0:
            nothing = np.zeros(len(values), dtype=np.int64)
            return cls(nothing, nothing, np.zeros(0, np.uint8), np.zeros((len(values), WINDOW), np.uint8))
        ends = np.frombuffer(offsets, dtype=kind)[values.offset : values.offset + len(values) + 1].astype(np.int64)
        data = np.zeros(0, dtype=np.uint8) if buffer is None else np.frombuffer(buffer, dtype=np.uint8)
        return cls(ends[:-1], np.diff(ends), data, _windows(data, ends[:-1]))

    def numbers_at(self, place: int) -> npt.NDArray[np.uint32]:
        """Four bytes of each value's window as a big-endian number, whatever they are."""
        return np.ascontiguousarray(self.heads[:, place : place + 4]).view(">u4")[:, 0].astype(np.uint32)

    def head(self, row: int, most: int) -> bytes:
        """A value's first bytes, at most so many."""
        start = int(self.starts[row])
        return self.data[start : start + min(int(self.sizes[row]), most)].tobytes()

    def begin_with(self, head: bytes, rows: Numbers) -> npt.NDArray[np.bool_]:
        """Which of the rows begin with these bytes."""
        starts = self.starts[rows]
        same = self.sizes[rows] >= len(head)
        for place, byte in enumerate(head):
            candidates = np.flatnonzero(same)
            same[candidates] = self.data[starts[candidates] + place] == byte
        return same


def _windows(data: Bytes, starts: Numbers) -> Bytes:
    """The first bytes from each start, one gather for all; zeros behind the end of the data."""
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
