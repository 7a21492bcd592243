"""Decodes values, and proves each by writing it again: else it is also kept raw."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from schema_mapping import names
from schema_mapping.columns.assemble import assemble
from schema_mapping.columns.value_columns import checked_numbers, value_columns
from schema_mapping.errors import KernelError, RowsTooLargeError
from schema_mapping.json.encode import encode
from schema_mapping.json.kernel.decoder import JsonDecoder
from schema_mapping.json.program import JsonProgram
from schema_mapping.value_format import NOT_ONE, Lengths, Places


def decode(
    values: pa.BinaryArray | pa.LargeBinaryArray | pa.ChunkedArray,
    program: JsonProgram,
    *,
    which: Places | None = None,
    prefix_lengths: Lengths | None = None,
) -> pa.StructArray:
    """Decode to rows of `program.arrow_type`; null and NOT_ONE values are null rows.

    `prefix_lengths` are of envelopes; offsets in `__err__` include them. Values beyond `program.value_memory`, or 2 GiB
    of a column, are `too_large`. Raises KernelError if values aren't binary, RowsTooLargeError if they exceed a limit
    only together.
    """
    types = checked_numbers(which, pa.int16().to_pandas_dtype(), len(values))
    prefixes = checked_numbers(prefix_lengths, pa.int32().to_pandas_dtype(), len(values))
    if types is not None and len(types) and not NOT_ONE <= types.min() <= types.max() <= 0:
        raise KernelError("a value names a type that the mapping doesn't have", types=1)
    try:
        return _run(values, program, types, prefixes, refuse_all=False)
    except OverflowError:
        if len(values) == 1:
            return _run(values, program, types, prefixes, refuse_all=True)
        raise RowsTooLargeError(
            "a column of these values would pass 2 GiB, or their rows 1 GiB; decode fewer values at once",
            values=len(values),
        ) from None


def _run(
    values: pa.BinaryArray | pa.LargeBinaryArray | pa.ChunkedArray,
    program: JsonProgram,
    types: Places | None,
    prefixes: Lengths | None,
    *,
    refuse_all: bool,
) -> pa.StructArray:
    decoder = JsonDecoder(program.tables, value_memory=program.value_memory, most_forms=program.most_forms)
    decoder.refuse_all = refuse_all
    for column in value_columns(values, types, prefixes):
        decoder.feed(column)
    rows = assemble(program.root, decoder)
    return rows if program.keep_raw else _proven(rows, values, program)


def _proven(
    rows: pa.StructArray, values: pa.BinaryArray | pa.LargeBinaryArray | pa.ChunkedArray, program: JsonProgram
) -> pa.StructArray:
    given = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    written = encode(rows, program)
    if written.type != given.type:
        written, given = written.cast(pa.large_binary()), given.cast(pa.large_binary())
    same = pc.fill_null(pc.equal(written, given), True)  # noqa: FBT003 - a value of the column
    if pc.all(same, min_count=0).as_py():
        return rows
    columns = dict(zip((field.name for field in rows.type), rows.flatten(), strict=True))
    columns[names.RAW] = pc.if_else(same, columns[names.RAW], given.cast(pa.binary()))
    columns[names.FORM] = pc.if_else(same, columns[names.FORM], pa.scalar(None, pa.string()))
    return pa.StructArray.from_arrays(list(columns.values()), fields=list(rows.type), mask=rows.is_null())
