"""Arrow buffers of rows, and the encoded values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_mapping.columns.outputs import AnyOutput, ListOutput, MapOutput, ScalarOutput, StructOutput

LARGEST_OFFSET: Final = 2**31 - 1


class RowSources:
    """Four numbers for each column: the addresses of validity, values and data, and the shift."""

    def __init__(self, root: StructOutput, rows: pa.StructArray) -> None:
        arrays = dict(_columns(root, rows))
        self.addresses = np.zeros((len(arrays), 4), dtype=np.uint64)
        self._kept = [_bind(array, self.addresses[number]) for number, array in arrays.items()]


def encoded_array(rows: pa.StructArray, data: pa.Buffer, offsets: pa.Buffer) -> pa.BinaryArray | pa.LargeBinaryArray:
    """Large binary above 2 GiB."""
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
    """Return the buffers, which must outlive the addresses."""
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


def column_names(output: AnyOutput, name: str = "") -> dict[int, str]:
    named = {output.output: name} if name else {}
    match output:
        case StructOutput():
            inner = list(zip(output.type, output.children, strict=True))
            parts = [column_names(child, f"{name}.{field.name}".removeprefix(".")) for field, child in inner]
        case ListOutput():
            parts = [column_names(output.element, f"{name}.element")]
        case MapOutput():
            parts = [column_names(output.key, f"{name}.key"), column_names(output.value, f"{name}.value")]
        case ScalarOutput():
            parts = []
    return named | {number: text for part in parts for number, text in part.items()}
