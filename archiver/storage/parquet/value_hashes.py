"""Hashes column values: XXH64 with seed 0, as in bloom filters."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.storage.parquet.columns.bloom_probe import text_hashes

_WORD: Final = 8
_EMPTY: Final = pa.py_buffer(b"")


def value_hashes(values: pa.Array) -> npt.NDArray[np.int64]:
    """Numbers of any width hash alike. Nulls have any hash.

    Raises ArrowException for other types.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_integer(values.type):
        words = np.ascontiguousarray(values.fill_null(0).cast(pa.int64()).to_numpy())
        return _hashed(np.arange(0, (len(words) + 1) * _WORD, _WORD, dtype=np.int64), pa.py_buffer(words))
    if not can_be_hashed(values.type):
        raise pa.ArrowTypeError(f"values of type {values.type} have no hashes")
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    wide = values.cast(pa.large_binary())
    _, offsets, octets = wide.buffers()
    starts = np.frombuffer(offsets, np.int64)[wide.offset : wide.offset + len(wide) + 1] if len(wide) else _NO_OFFSETS
    return _hashed(starts, octets or _EMPTY)


_NO_OFFSETS: Final = np.zeros(1, np.int64)


def can_be_hashed(kind: pa.DataType) -> bool:
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return (
        pa.types.is_signed_integer(kind)
        or any(is_kind(kind) for is_kind in texts)
        or (bool(pa.types.is_fixed_size_binary(kind)))
    )


def _hashed(offsets: npt.NDArray[np.int64], octets: pa.Buffer) -> npt.NDArray[np.int64]:
    hashes = np.empty(len(offsets) - 1, np.uint64)
    text_hashes(offsets, np.frombuffer(octets, np.uint8), hashes)
    return hashes.view(np.int64)
