"""Decodes values by their writers' schemas."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_mapping.avro.kernel.decoder import AvroDecoder
from schema_mapping.avro.program import WriterPrograms
from schema_mapping.columns.assemble import assemble
from schema_mapping.columns.value_columns import checked_numbers, value_columns
from schema_mapping.errors import KernelError, RowsTooLargeError
from schema_mapping.value_format import NOT_ONE, Lengths, Places


def decode(
    values: pa.BinaryArray | pa.LargeBinaryArray | pa.ChunkedArray,
    programs: WriterPrograms,
    *,
    which: Places | None = None,
    prefix_lengths: Lengths | None = None,
) -> pa.StructArray:
    """Decode to rows of `programs.arrow_type`; null and NOT_ONE values are null rows.

    `which` gives each value's writer (None: the first). `prefix_lengths` are of envelopes; offsets in `__err__` include
    them. Values beyond `programs.value_memory`, or 2 GiB of a column, are `too_large`. Raises KernelError if values
    aren't binary, RowsTooLargeError if they exceed a limit only together.
    """
    writers = checked_numbers(which, np.int16, len(values))
    prefixes = checked_numbers(prefix_lengths, np.int32, len(values))
    if writers is not None and len(writers) and not NOT_ONE <= writers.min() <= writers.max() < programs.writers:
        raise KernelError("a value names a writer that the mapping doesn't have", writers=programs.writers)
    try:
        return _run(values, programs, writers, prefixes, refuse_all=False)
    except OverflowError:
        if len(values) == 1:
            return _run(values, programs, writers, prefixes, refuse_all=True)
        raise RowsTooLargeError(
            "a column of these values would pass 2 GiB, or their rows 1 GiB; decode fewer values at once",
            values=len(values),
        ) from None


def _run(
    values: pa.BinaryArray | pa.LargeBinaryArray | pa.ChunkedArray,
    programs: WriterPrograms,
    writers: npt.NDArray[Any] | None,
    prefixes: npt.NDArray[Any] | None,
    *,
    refuse_all: bool,
) -> pa.StructArray:
    decoder = AvroDecoder(programs.tables, value_memory=programs.value_memory)
    decoder.refuse_all = refuse_all
    for column in value_columns(values, writers, prefixes):
        decoder.feed(column)
    return assemble(programs.root, decoder)
