"""Decodes by the kernel. Values that upb refuses go to `__raw__` and `__err__`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_mapping.errors import KernelError, RowsTooLargeError
from schema_mapping.protobuf.assemble_columns import assemble
from schema_mapping.protobuf.kernel.decoder import Decoder, Values
from schema_mapping.protobuf.program import Program

LARGEST_VALUE = 2**31 - 1

PrefixLengths = npt.NDArray[np.int32]


def decode(
    values: pa.BinaryArray | pa.LargeBinaryArray | pa.ChunkedArray,
    program: Program,
    *,
    prefix_lengths: PrefixLengths | None = None,
) -> pa.StructArray:
    """Decode to rows of `program.arrow_type`; null values are null rows.

    `prefix_lengths` are of envelopes; offsets in `__err__` include them. Values beyond `program.value_memory`, or 2 GiB
    of a column, are `too_large`. Raises KernelError if values aren't binary, RowsTooLargeError if they exceed a limit
    only together.
    """
    prefixes = _checked(prefix_lengths, len(values))
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    try:
        return _run(chunks, program, prefixes, refuse_all=False)
    except OverflowError:
        if len(values) == 1:
            return _run(chunks, program, prefixes, refuse_all=True)
        raise RowsTooLargeError(
            "a column of these values would pass 2 GiB, or their rows 1 GiB; decode fewer values at once",
            values=len(values),
        ) from None


def decode_parts(
    values: pa.BinaryArray | pa.LargeBinaryArray | pa.ChunkedArray,
    program: Program,
    *,
    prefix_lengths: PrefixLengths | None = None,
) -> tuple[pa.StructArray, ...]:
    """Mostly one array; more if a column exceeds 2 GiB."""
    try:
        return (decode(values, program, prefix_lengths=prefix_lengths),)
    except RowsTooLargeError:
        half = len(values) // 2
        first, second = (None, None) if prefix_lengths is None else (prefix_lengths[:half], prefix_lengths[half:])
        return (
            *decode_parts(values.slice(0, half), program, prefix_lengths=first),
            *decode_parts(values.slice(half), program, prefix_lengths=second),
        )


def _checked(prefix_lengths: PrefixLengths | None, count: int) -> PrefixLengths | None:
    if prefix_lengths is None:
        return None
    if len(prefix_lengths) != count:
        raise KernelError("there must be a prefix length for each value", values=count, prefixes=len(prefix_lengths))
    return np.ascontiguousarray(prefix_lengths, dtype=np.int32)


def _run(
    chunks: list[pa.Array], program: Program, prefixes: PrefixLengths | None, *, refuse_all: bool
) -> pa.StructArray:
    decoder = Decoder(program.tables, chunk_rows=program.chunk_rows, value_memory=program.value_memory)
    decoder.refuse_all = refuse_all
    decoder.expect(sum(map(len, chunks)), sum(chunk.nbytes for chunk in chunks))
    done = 0
    for chunk in chunks:
        _feed(decoder, chunk, None if prefixes is None else prefixes[done : done + len(chunk)])
        done += len(chunk)
    return assemble(program.layout, decoder)


def _feed(decoder: Decoder, chunk: pa.Array, prefixes: PrefixLengths | None) -> None:
    large = pa.types.is_large_binary(chunk.type)
    if not large and not pa.types.is_binary(chunk.type):
        raise KernelError("values to decode must be binary or large_binary", type=str(chunk.type))
    if len(chunk) == 0:
        return
    validity, offsets, data = chunk.buffers()
    if large or prefixes is not None:
        _check_sizes(chunk, _sizes(chunk, offsets, large=large), prefixes)
    decoder.feed(
        Values(
            validity=_address(validity),
            offsets=_address(offsets),
            data=_address(data),
            prefixes=0 if prefixes is None else prefixes.ctypes.data,
            start=chunk.offset,
            length=len(chunk),
            large=large,
        )
    )


def _check_sizes(chunk: pa.Array, sizes: npt.NDArray[Any], prefixes: PrefixLengths | None) -> None:
    largest = int(sizes.max())
    if largest > LARGEST_VALUE:
        raise KernelError("a value is larger than Protobuf allows", bytes=largest, limit=LARGEST_VALUE)
    if prefixes is not None:
        fits = (prefixes >= 0) & (prefixes <= sizes) | chunk.is_null().to_numpy(zero_copy_only=False)
        if not fits.all():
            raise KernelError("a prefix is longer than its value", row=int(np.argmin(fits)))


def _sizes(chunk: pa.Array, offsets: Any, *, large: bool) -> npt.NDArray[Any]:
    ends = np.frombuffer(offsets, dtype=np.int64 if large else np.int32)
    return np.diff(ends[chunk.offset : chunk.offset + len(chunk) + 1])


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else buffer.address
