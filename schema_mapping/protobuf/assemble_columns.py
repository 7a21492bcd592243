"""Wraps the kernel's buffers without copies."""

from __future__ import annotations

from typing import assert_never

import numpy as np
import pyarrow as pa

from schema_mapping.columns.zeros import NO_BYTES, zeros
from schema_mapping.protobuf.kernel.decoder import Decoder
from schema_mapping.protobuf.layout import Layout, LeafLayout, ListLayout, MapLayout, StructLayout

WIDEST = 16


def assemble(layout: StructLayout, decoder: Decoder) -> pa.StructArray:
    """Call it once."""
    return _Assembly(decoder).build(layout)


class _Assembly:
    def __init__(self, decoder: Decoder) -> None:
        self._lengths = decoder.rows()
        self._columns = decoder.take()
        self._dead = decoder.dead_rows()
        self._zeros = zeros((max(self._lengths) + 1) * WIDEST)

    def build(self, layout: Layout) -> pa.Array:
        length = self._lengths[layout.space]
        match layout:
            case LeafLayout():
                return self._leaf(layout, length)
            case StructLayout():
                bits, nulls = self._validity(layout.validity)
                children = [self.build(child) for child in layout.children]
                return pa.Array.from_buffers(layout.type, length, [bits], nulls, children=children)
            case ListLayout():
                bits, nulls = self._validity(layout.validity)
                element, offsets = self.build(layout.element), self._offsets(layout.counts)
                dead = None if layout.index is None else self._dead[layout.index]
                if dead is not None:
                    (element,), offsets = _without(dead, (element,), offsets)
                return pa.Array.from_buffers(layout.type, length, [bits, offsets], nulls, children=[element])
            case MapLayout():
                return self._map(layout, length)
            case _ as never:
                assert_never(never)

    def _validity(self, output: int | None) -> tuple[pa.Buffer | None, int]:
        if output is None:
            return None, 0
        _, nulls, bits, _, _ = self._columns[output]
        return (self._or_zeros(bits), nulls) if nulls else (None, 0)

    def _or_zeros(self, buffer: pa.Buffer | None) -> pa.Buffer:
        return self._zeros if buffer is None else buffer

    def _offsets(self, output: int) -> pa.Buffer:
        _, _, _, offsets, _ = self._columns[output]
        return self._or_zeros(offsets)

    def _leaf(self, layout: LeafLayout, length: int) -> pa.Array:
        _, _, bits, values, data = self._columns[layout.output]
        validity, nulls = self._validity(layout.validity)
        if pa.types.is_boolean(layout.type):
            buffers = [validity, self._or_zeros(bits)]
        elif pa.types.is_primitive(layout.type) or pa.types.is_decimal(layout.type):
            buffers = [validity, self._or_zeros(values)]
        else:
            buffers = [validity, self._or_zeros(values), NO_BYTES if data is None else data]
        return pa.Array.from_buffers(layout.type, length, buffers, nulls)

    def _map(self, layout: MapLayout, length: int) -> pa.MapArray:
        bits, nulls = self._validity(layout.validity)
        key, value = self.build(layout.key), self.build(layout.value)
        offsets = self._offsets(layout.counts)
        dead = self._dead[layout.index]
        if dead is not None:
            (key, value), offsets = _without(dead, (key, value), offsets)
        entries = pa.StructArray.from_arrays([key, value], fields=[layout.type.key_field, layout.type.item_field])
        return pa.Array.from_buffers(layout.type, length, [bits, offsets], nulls, children=[entries])


def _without(dead: bytes, columns: tuple[pa.Array, ...], offsets: pa.Buffer) -> tuple[tuple[pa.Array, ...], pa.Buffer]:
    keep = np.ones(len(columns[0]), dtype=bool)
    keep[np.frombuffer(dead, dtype=np.int64)] = False
    before = np.zeros(len(keep) + 1, dtype=np.int32)
    np.cumsum(keep, out=before[1:])
    mask = pa.array(keep)
    moved = before[np.frombuffer(offsets, dtype=np.int32)]
    return tuple(column.filter(mask) for column in columns), pa.py_buffer(moved)
