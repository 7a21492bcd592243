"""Encodes rows: `__raw__` if set, else `__prefix__` and the columns by the row's writer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_mapping.avro.kernel.encoder import encode_rows
from schema_mapping.avro.outputs import AnyOutput, ListOutput, MapOutput, ScalarOutput, StructOutput
from schema_mapping.avro.program import WriterPrograms
from schema_mapping.columns.mapped_rows import as_mapped
from schema_mapping.errors import KernelError

LARGEST_OFFSET: Final = 2**31 - 1
PROBLEMS: Final = {
    "null": "a column is null that the schema of the row's writer has a value for",
    "enum": "an enum column holds a text that isn't one of the enum's symbols",
    "form": "`__form__` names a form of writing, or a writer, that isn't known here",
    "branch": "a row has none of the branches of a union",
    "value": "a column holds a value that the type of the row's writer can't have",
}


def encode(rows: pa.StructArray, programs: WriterPrograms) -> pa.BinaryArray | pa.LargeBinaryArray:
    """Return the original values bit for bit; large binary above 2 GiB.

    Raises KernelError if the rows don't have the mapping's columns, or the mapping can't have decoded a row.
    """
    if rows.type != programs.arrow_type:
        rows = as_mapped(rows, programs.arrow_type)
    arrays: dict[int, pa.Array] = dict(_columns(programs.root, rows))
    sources = np.zeros((len(arrays), 4), dtype=np.uint64)
    kept = [_bind(array, sources[number]) for number, array in arrays.items()]
    try:
        data, offsets = encode_rows(programs.tables, sources, len(rows), guess=rows.nbytes)
    except ValueError as error:
        row, column, problem = error.args
        name = _names(programs.root).get(column)
        raise KernelError(PROBLEMS[problem], row=row, **({} if name is None else {"column": name})) from None
    del kept
    wide = data.size > LARGEST_OFFSET
    if not wide:
        offsets = pa.py_buffer(np.frombuffer(offsets, dtype=np.int64).astype(np.int32))
    return pa.Array.from_buffers(
        pa.large_binary() if wide else pa.binary(), len(rows), [_validity(rows), offsets, data], rows.null_count
    )


def _columns(output: AnyOutput, array: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    yield output.output, array
    match output:
        case StructOutput():
            for at, child in enumerate(output.children):
                yield from _columns(child, array.field(at))
        case ListOutput():
            yield from _columns(output.element, array.values)
        case MapOutput():
            entries = array.values
            yield from _columns(output.key, entries.field(0))
            yield from _columns(output.value, entries.field(1))
        case ScalarOutput():
            pass


def _bind(array: pa.Array, source: npt.NDArray[Any]) -> list[pa.Buffer | None]:
    """Set a column's addresses and shift. Return the buffers, which must outlive these."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    buffers: list[pa.Buffer | None] = array.buffers()[: 1 if pa.types.is_struct(array.type) else 3]
    for at, buffer in enumerate(buffers):
        if at < 1 + _parts(array.type):
            source[at] = 0 if buffer is None else buffer.address
    if not array.null_count:
        source[0] = 0
    source[3] = array.offset
    return buffers


def _parts(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return 0
    return 2 if pa.types.is_string(kind) or pa.types.is_binary(kind) else 1


def _validity(rows: pa.StructArray) -> pa.Buffer | None:
    if not rows.null_count:
        return None
    return pa.py_buffer(np.packbits(rows.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))


def _names(output: AnyOutput, name: str = "") -> dict[int, str]:
    named = {output.output: name} if name else {}
    match output:
        case StructOutput():
            inner = list(zip(output.type, output.children, strict=True))
            parts = [_names(child, f"{name}.{field.name}".removeprefix(".")) for field, child in inner]
        case ListOutput():
            parts = [_names(output.element, f"{name}.element")]
        case MapOutput():
            parts = [_names(output.key, f"{name}.key"), _names(output.value, f"{name}.value")]
        case ScalarOutput():
            parts = []
    return named | {number: text for part in parts for number, text in part.items()}
