"""Random schemas and rows for writers.

Hypothesis draws a seed for the values, so failures shrink quickly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import strategies as st

from archiver.storage.parquet.columns.plan import ColumnPlan, Encoding
from archiver.storage.parquet.leaves import ParquetLeaf, leaves_of
from tests.support.storage.random_values import SHAPES, values_of

FIXED: Final = (
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.time64("us"),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns"),
    pa.uuid(),
)
TEXTS: Final = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
KEYS: Final = (pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.date32(), pa.uuid())
DEEPEST: Final = 4
T = TypeVar("T")
NAMES: Final = ("a", "b", "offset", "__raw__", "ä", "two words", "Case", "\U0001f600")
ROW_COUNTS: Final = (0, 1, 2, 7, 8, 9, 16, 63, 64, 65, 127, 128, 129, 257, 503, 504, 505)


@dataclass(frozen=True, slots=True)
class Rows:
    schema: pa.Schema
    groups: tuple[tuple[pa.RecordBatch, ...], ...]
    seed: int

    @property
    def tables(self) -> list[pa.Table]:
        return [pa.Table.from_batches(batches, self.schema) for batches in self.groups]


def leaf_types() -> st.SearchStrategy[pa.DataType]:
    decimals = st.integers(1, 38).flatmap(
        lambda digits: st.integers(0, digits).map(lambda scale: pa.decimal128(digits, scale))
    )
    return st.one_of(
        st.sampled_from(FIXED), st.sampled_from(TEXTS), decimals, st.sampled_from((1, 3, 16, 33)).map(pa.binary)
    )


@st.composite
def schemas(draw: st.DrawFn, *, widest: int = 5, deepest: int = DEEPEST) -> pa.Schema:
    ids = count(1)
    return pa.schema([_field(draw, ids, deepest, at) for at in range(draw(st.integers(1, widest)))])


@st.composite
def rows(draw: st.DrawFn, schema: pa.Schema | None = None, *, is_tame: bool = False) -> Rows:
    """`is_tame`: times that all engines know."""
    schema = schema or draw(schemas())
    group = st.lists(st.sampled_from(ROW_COUNTS), min_size=1, max_size=3)
    sizes = draw(st.lists(group.map(lambda counts: counts if any(counts) else [*counts, 1]), min_size=1, max_size=3))
    seed = draw(st.integers(0, 2**32 - 1))
    return rows_of(schema, sizes, seed, is_tame=is_tame)


def encodings_of(kind: pa.DataType) -> list[Encoding]:
    result = [Encoding.DICTIONARY, Encoding.PLAIN]
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        result.append(Encoding.DIFFERENCES)
    if kind in (pa.string(), pa.binary()):
        result.append(Encoding.SHARED_STARTS)
    return result


@st.composite
def plans(draw: st.DrawFn, schema: pa.Schema, *, without: Collection[Encoding] = ()) -> tuple[ColumnPlan, ...]:
    return tuple(_plan(draw, leaf, without) for leaf in leaves_of(schema))


def _plan(draw: st.DrawFn, leaf: ParquetLeaf, without: Collection[Encoding]) -> ColumnPlan:
    has_filter = not pa.types.is_boolean(leaf.type) and draw(st.integers(0, 3)) == 3
    return ColumnPlan(
        leaf=leaf,
        encoding=draw(st.sampled_from([encoding for encoding in encodings_of(leaf.type) if encoding not in without])),
        level=draw(st.sampled_from((None, 1, 3))),
        has_statistics=draw(st.integers(0, 3)) > 0,
        filter_size=draw(st.sampled_from((32, 64, 2048, 16_384))) if has_filter else 0,
    )


def rows_of(schema: pa.Schema, sizes: Sequence[Sequence[int]], seed: int, *, is_tame: bool = False) -> Rows:
    maker = _Maker(np.random.default_rng(seed), is_tame=is_tame)
    return Rows(schema, tuple(tuple(maker.batch(schema, size) for size in group) for group in sizes), seed)


def with_id(name: str, kind: pa.DataType, number: int, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"PARQUET:field_id": str(number)})


def _field(draw: st.DrawFn, ids: Iterator[int], depth: int, at: int) -> pa.Field:
    name = f"{draw(st.sampled_from(NAMES))}{at}"
    return with_id(name, _type(draw, ids, depth), next(ids), nullable=draw(st.booleans()))


def _type(draw: st.DrawFn, ids: Iterator[int], depth: int) -> pa.DataType:
    choice = draw(st.sampled_from(("leaf", "leaf", "struct", "list", "map", "large_list"))) if depth > 1 else "leaf"
    if choice == "struct":
        return pa.struct([_field(draw, ids, depth - 1, at) for at in range(draw(st.integers(1, 3)))])
    if choice in ("list", "large_list"):
        kind = _type(draw, ids, depth - 1)
        element = with_id("element", kind, next(ids), nullable=draw(st.booleans()))
        return pa.list_(element) if choice == "list" else pa.large_list(element)
    if choice == "map":
        key = with_id("key", draw(st.sampled_from(KEYS)), next(ids), nullable=False)
        kind = _type(draw, ids, depth - 1)
        return pa.map_(key, with_id("value", kind, next(ids), nullable=draw(st.booleans())))
    return draw(leaf_types())


class _Maker:
    def __init__(self, dice: np.random.Generator, *, is_tame: bool) -> None:
        self._dice = dice
        self._is_tame = is_tame

    def batch(self, schema: pa.Schema, size: int) -> pa.RecordBatch:
        before, after = self._margins()
        arrays = [self.array(field, before + size + after) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema).slice(before, size)

    def array(self, field: pa.Field, size: int) -> pa.Array:
        before, after = self._margins()
        made = self._whole(field, before + size + after)
        return made.slice(before, size)

    def _whole(self, field: pa.Field, size: int) -> pa.Array:
        kind = field.type
        validity = self._validity(size) if field.nullable else None
        if pa.types.is_struct(kind):
            return pa.Array.from_buffers(
                kind, size, [_bitmap(validity)], children=[self.array(child, size) for child in kind]
            )
        if pa.types.is_map(kind):
            entry = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
            return self._listed(kind, entry, size, validity)
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return self._listed(kind, kind.value_field, size, validity)
        values = values_of(kind, size, self._chosen(SHAPES), self._dice, is_tame=self._is_tame)
        return with_nulls(values, validity)

    def _listed(
        self, kind: pa.DataType, element: pa.Field, size: int, validity: npt.NDArray[np.bool_] | None
    ) -> pa.Array:
        """First entries are unused, and null lists have entries."""
        longest = self._chosen((0, 1, 3, 12))
        lengths = self._dice.integers(0, longest, size, endpoint=True)
        if self._dice.random() < 0.2:
            lengths[:] = longest
        start = self._chosen((0, 0, 5))
        offsets = start + np.concatenate([[0], np.cumsum(lengths)])
        entries = self.array(element, int(offsets[-1]) + self._chosen((0, 4)))
        width = np.int64 if pa.types.is_large_list(kind) else np.int32
        buffers = [_bitmap(validity), pa.py_buffer(offsets.astype(width).tobytes())]
        return pa.Array.from_buffers(kind, size, buffers, children=[entries])

    def _validity(self, size: int) -> npt.NDArray[np.bool_] | None:
        share = self._chosen((None, 0.0, 0.03, 0.5, 0.5, 0.97, 1.0))
        if share is None:
            return None
        if share == 0.5 and self._dice.random() < 0.5:  # runs of nulls
            return np.repeat(self._dice.random(size) < share, 9)[:size]
        return np.asarray(self._dice.random(size) >= share)

    def _margins(self) -> tuple[int, int]:
        if self._dice.random() < 0.5:
            return 0, 0
        before, after = self._dice.integers(0, 11, 2)
        return int(before), int(after)

    def _chosen(self, choices: Sequence[T]) -> T:
        return choices[int(self._dice.integers(len(choices)))]


def with_nulls(values: pa.Array, validity: npt.NDArray[np.bool_] | None) -> pa.Array:
    if validity is None:
        return values
    if isinstance(values, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(values.type, with_nulls(values.storage, validity))
    assert values.offset == 0
    return pa.Array.from_buffers(values.type, len(values), [_bitmap(validity), *values.buffers()[1:]])


def _bitmap(validity: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    return None if validity is None else pa.py_buffer(np.packbits(validity, bitorder="little").tobytes())
