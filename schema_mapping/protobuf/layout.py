"""The kernel's output columns in the Arrow struct, as a tree.

Nodes name the row space of their length, and the output of their validity.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafLayout:
    """Values are in `output`; `validity` may be the same column."""

    type: pa.DataType
    space: int
    output: int
    validity: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StructLayout:
    type: pa.DataType
    space: int
    validity: int | None
    children: tuple[Layout, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLayout:
    type: pa.DataType
    space: int
    validity: int | None
    counts: int
    element: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLayout:
    """Like a list. `index` is the position among the maps."""

    type: pa.DataType
    space: int
    validity: int | None
    counts: int
    entries: int
    key: Layout
    value: Layout
    index: int


Layout = LeafLayout | StructLayout | ListLayout | MapLayout
