"""Wraps the kernel's columns without copies."""

from __future__ import annotations

from typing import Protocol, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_mapping.columns.outputs import ROOT_SPACE, AnyOutput, ListOutput, MapOutput, ScalarOutput, StructOutput
from schema_mapping.columns.zeros import NO_BYTES, zeros


class FilledColumns(Protocol):
    """A kernel's decoder after its last value."""

    def rows(self) -> list[int]: ...

    def replaced_rows(self, space: int) -> bytes | None: ...

    def take(self, column: int) -> tuple[pa.Buffer | None, pa.Buffer | None, pa.Buffer | None] | None: ...


def assemble(root: StructOutput, decoder: FilledColumns) -> pa.StructArray:
    """Call it once."""
    return _Columns(decoder).build(root, ROOT_SPACE)


class _Columns:
    def __init__(self, decoder: FilledColumns) -> None:
        self._decoder = decoder
        self._rows = decoder.rows()

    def build(self, output: AnyOutput, space: int) -> pa.Array:
        rows = self._rows[space]
        taken = self._decoder.take(output.output)
        bits, values, data = (zeros(rows), None, None) if taken is None else taken
        match output:
            case ScalarOutput():
                return _scalar(output.type, rows, (bits, values, data))
            case StructOutput():
                children = [self.build(child, space) for child in output.children]
                return pa.Array.from_buffers(output.type, rows, [bits], children=children)
            case ListOutput():
                offsets = zeros((rows + 1) * 4) if values is None else values
                element = self.build(output.element, output.space)
                return pa.Array.from_buffers(output.type, rows, [bits, offsets], children=[element])
            case MapOutput():
                offsets = zeros((rows + 1) * 4) if values is None else values
                return self._map(output, rows, bits, offsets)
            case _ as never:
                assert_never(never)

    def _map(self, output: MapOutput, rows: int, bits: pa.Buffer | None, offsets: pa.Buffer) -> pa.MapArray:
        key, value = self.build(output.key, output.space), self.build(output.value, output.space)
        replaced = self._decoder.replaced_rows(output.space)
        if replaced is not None:
            key, value, offsets = _without(np.frombuffer(replaced, dtype=np.int64), key, value, offsets)
        entries = pa.StructArray.from_arrays([key, value], fields=[output.type.key_field, output.type.item_field])
        return pa.Array.from_buffers(output.type, rows, [bits, offsets], children=[entries])


def _scalar(kind: pa.DataType, rows: int, buffers: tuple[pa.Buffer | None, ...]) -> pa.Array:
    bits, values, data = buffers
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _scalar(kind.storage_type, rows, buffers))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        offsets = zeros((rows + 1) * 4) if values is None else values
        return pa.Array.from_buffers(kind, rows, [bits, offsets, NO_BYTES if data is None else data])
    size = rows if pa.types.is_boolean(kind) else rows * kind.byte_width
    return pa.Array.from_buffers(kind, rows, [bits, zeros(size) if values is None else values])


def _without(
    replaced: npt.NDArray[np.int64], key: pa.Array, value: pa.Array, offsets: pa.Buffer
) -> tuple[pa.Array, pa.Array, pa.Buffer]:
    keep = np.ones(len(key), dtype=bool)
    keep[replaced] = False
    before = np.zeros(len(key) + 1, dtype=np.int32)
    np.cumsum(keep, out=before[1:])
    mask = pa.array(keep)
    return key.filter(mask), value.filter(mask), pa.py_buffer(before[np.frombuffer(offsets, dtype=np.int32)])
