"""The kernel's output columns as a tree.

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
    """`counts` has its offsets; its elements have a separate row space.

    The nanoseconds of a map's times are a list beside it; `index` is the map's position among the maps.
    """

    type: pa.DataType
    space: int
    validity: int | None
    counts: int
    element: Layout
    index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLayout:
    """`index` is the position among the maps."""

    type: pa.DataType
    space: int
    validity: int | None
    counts: int
    entries: int
    key: Layout
    value: Layout
    index: int


Layout = LeafLayout | StructLayout | ListLayout | MapLayout
