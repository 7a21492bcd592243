"""Arrow columns for the kernels' decoders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_mapping.errors import KernelError
from schema_mapping.kernel.value_column import ValueColumn

LARGEST_VALUE: Final = 2**31 - 1


def value_columns(
    values: pa.BinaryArray | pa.LargeBinaryArray | pa.ChunkedArray,
    writers: npt.NDArray[Any] | None,
    prefixes: npt.NDArray[Any] | None,
) -> Iterator[ValueColumn]:
    """Use each chunk before the arrays are gone. Raises KernelError if they aren't binary."""
    done = 0
    for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
        part = slice(done, done + len(chunk))
        column = _value_column(
            chunk, None if writers is None else writers[part], None if prefixes is None else prefixes[part]
        )
        if column is not None:
            yield column
        done += len(chunk)


def checked_numbers(
    numbers: npt.NDArray[Any] | None, kind: type[np.number[Any]], count: int
) -> npt.NDArray[Any] | None:
    if numbers is None:
        return None
    if len(numbers) != count:
        raise KernelError("there must be a writer and a prefix length for each value", values=count, given=len(numbers))
    return np.ascontiguousarray(numbers, dtype=kind)


def _value_column(
    chunk: pa.Array, writers: npt.NDArray[Any] | None, prefixes: npt.NDArray[Any] | None
) -> ValueColumn | None:
    large = pa.types.is_large_binary(chunk.type)
    if not large and not pa.types.is_binary(chunk.type):
        raise KernelError("values to decode must be binary or large_binary", type=str(chunk.type))
    if len(chunk) == 0:
        return None
    validity, offsets, data = chunk.buffers()
    _check_sizes(chunk, offsets, prefixes, large=large)
    return ValueColumn(
        validity=_address(validity),
        offsets=_address(offsets),
        data=_address(data),
        prefixes=0 if prefixes is None else prefixes.ctypes.data,
        writers=0 if writers is None else writers.ctypes.data,
        start=chunk.offset,
        length=len(chunk),
        large=large,
    )


def _check_sizes(chunk: pa.Array, offsets: pa.Buffer, prefixes: npt.NDArray[Any] | None, *, large: bool) -> None:
    if not large and prefixes is None:
        return
    ends = np.frombuffer(offsets, dtype=np.int64 if large else np.int32)
    sizes = np.diff(ends[chunk.offset : chunk.offset + len(chunk) + 1])
    if sizes.max() > LARGEST_VALUE:
        raise KernelError("a value is larger than a column takes", bytes=int(sizes.max()), limit=LARGEST_VALUE)
    if prefixes is not None:
        fits = (prefixes >= 0) & (prefixes <= sizes) | chunk.is_null().to_numpy(zero_copy_only=False)
        if not fits.all():
            raise KernelError("a prefix is longer than its value", row=int(np.argmin(fits)))


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else buffer.address
