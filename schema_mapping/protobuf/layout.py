"""Where the kernel's output columns stand in the Arrow struct: a tree of plain values beside the Arrow type.

Every node names the row space that gives its length and the output column that gives its validity, if it has one.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafLayout:
    """A column without children: `output` holds its values and, where `validity` is the same, its own validity."""

    type: pa.DataType
    space: int
    output: int
    validity: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StructLayout:
    """A message; its children lie in the same row space."""

    type: pa.DataType
    space: int
    validity: int | None
    children: tuple[Layout, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLayout:
    """A repeated field: `counts` holds its offsets, the element lies in a space of its own."""

    type: pa.DataType
    space: int
    validity: int | None
    counts: int
    element: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLayout:
    """A map: as a list, of keys and values; `index` is its place among the maps."""

    type: pa.DataType
    space: int
    validity: int | None
    counts: int
    entries: int
    key: Layout
    value: Layout
    index: int


Layout = LeafLayout | StructLayout | ListLayout | MapLayout
