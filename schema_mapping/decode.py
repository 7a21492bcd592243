"""Values to rows: runs the kernel over a binary column and wraps its buffers as the mapping's Arrow struct.

Nothing about a payload raises: what upb refuses ends in `__raw__` and `__err__` (DESIGN sections 2 and 5).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_mapping.assemble_columns import assemble
from schema_mapping.errors import KernelError
from schema_mapping.kernel.decoder import Decoder, Values
from schema_mapping.program import Program

LARGEST_VALUE = 2**31 - 1


def decode(
    values: pa.BinaryArray | pa.LargeBinaryArray | pa.ChunkedArray,
    program: Program,
    *,
    prefix_lengths: npt.NDArray[np.int32] | None = None,
) -> pa.StructArray:
    """The values as rows of `program.arrow_type`; a null value is a null row.

    `prefix_lengths` says for each value how many of its first bytes are an envelope, kept as `__prefix__`; `__err__`
    counts its byte offset from the value's start, envelope included. Raises KernelError when the values aren't binary,
    or so many that a column would pass Arrow's 2 GiB: then decode them in smaller batches.
    """
    decoder = Decoder(program.tables)
    done = 0
    prefixes = None if prefix_lengths is None else np.ascontiguousarray(prefix_lengths, dtype=np.int32)
    if prefixes is not None and len(prefixes) != len(values):
        raise KernelError("there must be a prefix length for each value", values=len(values), prefixes=len(prefixes))
    for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else (values,):
        part = None if prefixes is None else prefixes[done : done + len(chunk)]
        _feed(decoder, chunk, part)
        done += len(chunk)
    return assemble(program.layout, decoder)


def _feed(decoder: Decoder, chunk: pa.Array, prefixes: npt.NDArray[np.int32] | None) -> None:
    large = pa.types.is_large_binary(chunk.type)
    if not large and not pa.types.is_binary(chunk.type):
        raise KernelError("values to decode must be binary or large_binary", type=str(chunk.type))
    if len(chunk) == 0:
        return
    validity, offsets, data = chunk.buffers()
    if large:
        _check_sizes(chunk, offsets)
    source = Values(
        validity=_address(validity),
        offsets=_address(offsets),
        data=_address(data),
        prefixes=0 if prefixes is None else prefixes.ctypes.data,
        start=chunk.offset,
        length=len(chunk),
        large=large,
    )
    try:
        decoder.feed(source)
    except OverflowError:
        raise KernelError(
            "a column of these values would pass 2 GiB; decode fewer values at once", values=len(chunk)
        ) from None


def _check_sizes(chunk: pa.LargeBinaryArray, offsets: Any) -> None:
    ends = np.frombuffer(offsets, dtype=np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
    largest = int(np.max(np.diff(ends), initial=0))
    if largest > LARGEST_VALUE:
        raise KernelError("a value is larger than Protobuf allows", bytes=largest, limit=LARGEST_VALUE)


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else buffer.address
