"""Row groups of thousands of rows: bits, runs, pages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

import numpy as np
import pyarrow as pa

from archiver.storage.parquet.columns.plan import ColumnPlan, Encoding
from archiver.storage.parquet.leaves import leaves_of
from tests.support.storage.random_rows import with_id, with_nulls

MANY: Final = 45_000
"""More rows than two pages have."""
BLOCK: Final = 128
"""How many differences share a smallest one."""
MEBIBYTE: Final = 1 << 20


def batch(columns: dict[str, pa.Array], *, nullable: bool = True) -> pa.RecordBatch:
    ids = count(1)
    fields = [with_id(name, _with_ids(item.type, ids), next(ids), nullable=nullable) for name, item in columns.items()]
    arrays = [item.cast(field.type) for item, field in zip(columns.values(), fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _with_ids(kind: pa.DataType, ids: Iterator[int]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([with_id(entry.name, _with_ids(entry.type, ids), next(ids)) for entry in kind])
    if pa.types.is_list(kind):
        return pa.list_(with_id("element", _with_ids(kind.value_type, ids), next(ids)))
    return kind


def plans_of(schema: pa.Schema, encoding: Encoding, *, level: int | None = 1) -> list[ColumnPlan]:
    leaves = leaves_of(schema)
    return [ColumnPlan(leaf=leaf, encoding=encoding, level=level, has_statistics=True) for leaf in leaves]


def of_each_width(dice: np.random.Generator) -> pa.RecordBatch:
    columns = {}
    for bits in (0, 1, 2, 3, 5, 7, 8, 9, 12, 15, 16):
        for values in {max(1, (1 << bits) - 1), 1 << bits, (1 << bits) + 1}:
            columns[f"{values} values"] = _spread(values, 4_000 if bits < 12 else 70_000, dice)
    rows = max(map(len, columns.values()))
    padded = {
        name: pa.array(np.resize(value, rows), pa.int32()) for name, value in columns.items() if len(value) == rows
    }
    return batch(padded)


def of_each_small_width(dice: np.random.Generator) -> pa.RecordBatch:
    sizes = sorted({values for bits in range(13) for values in ((1 << bits) - 1, 1 << bits, (1 << bits) + 1) if values})
    return batch({f"{values} values": pa.array(_spread(values, 5_000, dice), pa.int64()) for values in sizes})


def _spread(values: int, rows: int, dice: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    integers = dice.integers(values, size=rows)
    integers[: min(values, rows)] = np.arange(min(values, rows))
    return integers * 7919 - 5


def of_each_run(dice: np.random.Generator) -> pa.RecordBatch:
    lengths = [*range(1, 71), 503, 504, 505, 511, 512, 513, 1008, 1009]
    mixed = dice.permutation(lengths * 2)
    turns = np.repeat(np.arange(len(mixed)), mixed)
    single = np.where(dice.random(len(turns)) < 0.02, 1, 0)  # single ones that break runs
    holes = with_nulls(pa.array(turns * 3), turns % 2 == 0)
    runs = pa.array(turns % 5 + single)
    return batch(
        {
            "runs": runs,
            "holes": holes,
            "flags": pa.array(turns % 2 == 1),
            "texts": pa.array([f"value {value}" for value in (turns % 3).tolist()]),
            "broken": with_nulls(pa.array(turns), single == 0),
        }
    )


def of_each_difference(dice: np.random.Generator) -> pa.RecordBatch:
    rows = 67 * 2 * BLOCK + 5
    wide = np.zeros(rows, np.uint64)
    for bits in range(65):
        part = slice(2 * bits * BLOCK, 2 * (bits + 1) * BLOCK)
        steps = dice.integers(0, 2**bits - 1, 2 * BLOCK, dtype=np.uint64, endpoint=True)
        wide[part] = np.cumsum(steps, dtype=np.uint64)  # goes around, as differences do
    limits = np.iinfo(np.int64)
    signed = wide.astype(np.int64)
    ends = np.where(np.arange(rows) % 2 == 0, limits.min, limits.max)
    narrow = (wide >> np.uint64(3)).astype(np.uint32).astype(np.int32)
    narrow_ends = np.where(np.arange(rows) % 3 == 0, -(2**31), 2**31 - 1).astype(np.int32)
    return batch(
        {
            "wide": pa.array(signed),
            "ends": pa.array(ends),
            "narrow": pa.array(narrow),
            "narrow ends": pa.array(narrow_ends),
            "falling": pa.array(np.arange(rows, dtype=np.int64)[::-1].copy()),
            "times": pa.array(np.sort(dice.integers(0, 10**15, rows))).cast(pa.timestamp("us", "UTC")),
            "days": pa.array(dice.integers(-(2**31), 2**31 - 1, rows).astype(np.int32)).cast(pa.date32()),
            "holes": with_nulls(pa.array(signed), dice.random(rows) < 0.5),
        }
    )


def with_dictionaries_given_up(dice: np.random.Generator) -> pa.RecordBatch:
    """Dictionaries pass a mebibyte early, midway, at the last value, or not."""
    rows = MANY
    places = np.arange(rows)
    late = np.where(places < 30_000, places % 10, places)
    texts = [f"{value:060}" for value in places.tolist()]
    return batch(
        {
            "texts": pa.array(texts),
            "late": pa.array([f"{value:0100}" for value in late.tolist()]),
            "octets": with_nulls(pa.array([text.encode() for text in texts], pa.binary()), dice.random(rows) < 0.7),
            "fixed": pa.array([item.to_bytes(40, "big") for item in places.tolist()], pa.binary(40)),
            "one large": pa.array(["a"] * 100 + ["b" * (2 * MEBIBYTE)] + ["c"] * (rows - 101)),
            "kept": pa.array([f"{value % 100:060}" for value in places.tolist()]),
        }
    )


def at_the_dictionary_border(more: int) -> pa.RecordBatch:
    values = MEBIBYTE // 8 + more
    numbers = np.arange(values)
    texts = [f"{value:060}" for value in range(MEBIBYTE // 64 + more)]
    padding: list[str] = (texts * 9)[: values - len(texts)]
    return batch({"numbers": pa.array(numbers), "texts": pa.array([*texts, *padding])})


def in_many_pages(dice: np.random.Generator) -> pa.RecordBatch:
    rows = MANY
    places = np.arange(rows)
    blank = np.zeros(rows, bool)
    floats = np.where(places < 20_000, np.nan, places / 7)
    return batch(
        {
            "rising": pa.array(places),
            "falling": pa.array(-places),
            "neither": pa.array(dice.integers(0, 100, rows)),
            "nulls": with_nulls(pa.array(places), blank),
            "nulls at first": with_nulls(pa.array(places), places >= 25_000),
            "equal": pa.array(np.full(rows, 7)),
            "NaNs at first": pa.array(floats),
            "texts": pa.array([f"{'ab'[at % 2]}{at:099}" for at in places.tolist()]),
            "flags": pa.array(places < 20_000),
        }
    )


def with_long_lists(dice: np.random.Generator) -> pa.RecordBatch:
    lengths = [0, 3, 60_000, 0, 1, 25_000, 2, 0, *dice.integers(0, 4, 2_000).tolist()]
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    values = pa.array(dice.integers(0, 50, sum(lengths)))
    texts = pa.array([f"text {value}" for value in values.to_pylist()])
    mask = pa.array(np.arange(len(lengths)) % 7 == 3)
    members = pa.StructArray.from_arrays([values, texts], ["number", "text"])
    return batch(
        {
            "numbers": pa.ListArray.from_arrays(offsets, values, mask=mask),
            "members": pa.ListArray.from_arrays(offsets, members, mask=mask),
            "after": pa.array(range(len(lengths))),
        }
    )


def with_large_texts() -> pa.RecordBatch:
    sizes = [4095, 4096, 4097, 10, 300_000, 900_000, MEBIBYTE, 3 * MEBIBYTE, 0, 5, 200_000]
    texts = [chr(97 + at) * size for at, size in enumerate(sizes)]
    return batch(
        {
            "texts": pa.array(texts),
            "octets": pa.array([text.encode() for text in texts], pa.large_binary()),
            "longest": pa.array([text if len(text) <= 4096 else None for text in texts]),
            "too long": pa.array(
                ["z" * 4097 if size == 10 else value[:9] for value, size in zip(texts, sizes, strict=True)]
            ),
            "listed": pa.array([[text, None, text[:7]] for text in texts]),
        }
    )
