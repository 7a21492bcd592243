"""Decodes values by their writers' schemas."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_mapping.avro.assemble import assemble
from schema_mapping.avro.kernel.decoder import AvroDecoder, AvroValues
from schema_mapping.avro.program import WriterPrograms
from schema_mapping.errors import KernelError, RowsTooLargeError
from schema_mapping.value_format import NOT_ONE, Lengths, Places

LARGEST_VALUE: Final = 2**31 - 1


def decode(
    values: pa.BinaryArray | pa.LargeBinaryArray | pa.ChunkedArray,
    programs: WriterPrograms,
    *,
    which: Places | None = None,
    prefix_lengths: Lengths | None = None,
) -> pa.StructArray:
    """Decode to rows of `programs.arrow_type`; null and NOT_ONE values are null rows.

    `which` gives each value's writer (None: the first). `prefix_lengths` are of envelopes, kept as `__prefix__`;
    offsets in `__err__` include them. Values beyond `programs.value_memory`, or 2 GiB of a column, are `too_large`.
    Raises KernelError if values aren't binary, RowsTooLargeError if they exceed 2 GiB only together.
    """
    writers = _checked(which, np.int16, len(values))
    prefixes = _checked(prefix_lengths, np.int32, len(values))
    if writers is not None and len(writers) and not NOT_ONE <= writers.min() <= writers.max() < programs.writers:
        raise KernelError("a value names a writer that the mapping doesn't have", writers=programs.writers)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    try:
        return _run(chunks, programs, writers, prefixes, refuse_all=False)
    except OverflowError:
        if len(values) == 1:
            return _run(chunks, programs, writers, prefixes, refuse_all=True)
        raise RowsTooLargeError(
            "a column of these values would pass 2 GiB; decode fewer values at once", values=len(values)
        ) from None


def _checked(numbers: npt.NDArray[Any] | None, kind: type[np.number[Any]], count: int) -> npt.NDArray[Any] | None:
    if numbers is None:
        return None
    if len(numbers) != count:
        raise KernelError("there must be a writer and a prefix length for each value", values=count, given=len(numbers))
    return np.ascontiguousarray(numbers, dtype=kind)


def _run(
    chunks: list[pa.Array],
    programs: WriterPrograms,
    writers: npt.NDArray[Any] | None,
    prefixes: npt.NDArray[Any] | None,
    *,
    refuse_all: bool,
) -> pa.StructArray:
    decoder = AvroDecoder(programs.tables, value_memory=programs.value_memory)
    decoder.refuse_all = refuse_all
    done = 0
    for chunk in chunks:
        part = slice(done, done + len(chunk))
        _feed(decoder, chunk, None if writers is None else writers[part], None if prefixes is None else prefixes[part])
        done += len(chunk)
    return assemble(programs.root, decoder)


def _feed(
    decoder: AvroDecoder, chunk: pa.Array, writers: npt.NDArray[Any] | None, prefixes: npt.NDArray[Any] | None
) -> None:
    large = pa.types.is_large_binary(chunk.type)
    if not large and not pa.types.is_binary(chunk.type):
        raise KernelError("values to decode must be binary or large_binary", type=str(chunk.type))
    if len(chunk) == 0:
        return
    validity, offsets, data = chunk.buffers()
    _check_sizes(chunk, offsets, prefixes, large=large)
    decoder.feed(
        AvroValues(
            validity=_address(validity),
            offsets=_address(offsets),
            data=_address(data),
            prefixes=0 if prefixes is None else prefixes.ctypes.data,
            writers=0 if writers is None else writers.ctypes.data,
            start=chunk.offset,
            length=len(chunk),
            large=large,
        )
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
