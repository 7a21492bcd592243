"""Partition rows by murmur2 of their keys, as Kafka's clients do.

Rows without a key go to one partition per batch, in turn.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from archiver.errors import BadBatch

Partitions: TypeAlias = npt.NDArray[np.int32]
_Words: TypeAlias = npt.NDArray[np.uint32]

_SEED: Final = 0x9747B28C
_M: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)
MOST_KEY_BYTES: Final = 64 << 10
"""Words of a key are hashed one after the other: a longer one would take a worker's time from other clients."""


def partitions_of(keys: pa.BinaryArray, partitions: int, *, turn: int) -> Partitions:
    """Raises BadBatch for a very long key."""
    if len(keys) == 0:
        return np.zeros(0, np.int32)
    longest = pc.max(pc.binary_length(keys)).as_py() or 0
    if longest > MOST_KEY_BYTES:
        raise BadBatch(
            f"a key has {longest:,} bytes: keys of more than {MOST_KEY_BYTES:,} can't choose the partition. Name it in"
            " `partition` of `app_metadata`"
        )
    chosen = (_murmur2(keys) & _POSITIVE) % np.uint32(partitions)
    without = keys.is_null().to_numpy(zero_copy_only=False)
    return np.where(without, turn % partitions, chosen).astype(np.int32)


def _murmur2(keys: pa.BinaryArray) -> _Words:
    offsets = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    sizes = np.diff(offsets)
    # Words of the last key may be read beyond its end: they are not used.
    data = np.concatenate([np.frombuffer(keys.buffers()[2] or b"", np.uint8), np.zeros(4, np.uint8)])
    starts = offsets[:-1]
    hashes = (np.uint32(_SEED) ^ sizes.astype(np.uint32)).astype(np.uint32)
    rows = np.arange(len(keys))
    for word in range(int(sizes.max(initial=0)) // 4):
        rows = rows[sizes[rows] >= 4 * (word + 1)]
        k = _word(data, starts[rows] + 4 * word) * _M
        k = (k ^ (k >> np.uint32(24))) * _M
        hashes[rows] = (hashes[rows] * _M) ^ k
    tails = starts + sizes // 4 * 4
    left = sizes % 4
    for size in (3, 2, 1):
        rows = np.flatnonzero(left >= size)
        hashes[rows] ^= data[tails[rows] + size - 1].astype(np.uint32) << np.uint32(8 * (size - 1))
    rows = np.flatnonzero(left)
    hashes[rows] *= _M
    hashes ^= hashes >> np.uint32(13)
    hashes *= _M
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _word(data: npt.NDArray[np.uint8], positions: npt.NDArray[np.int64]) -> _Words:
    bytes_ = [data[positions + index].astype(np.uint32) << np.uint32(8 * index) for index in range(4)]
    word: _Words = bytes_[0] | bytes_[1] | bytes_[2] | bytes_[3]
    return word
