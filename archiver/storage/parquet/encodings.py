"""Which encoding each column of a file gets, by a look at the first rows that go into it.

Dictionaries are for values that repeat. Where they don't, one is built for a megabyte, given up, and costs more than it
saves; numbers are then kept as differences, short strings without the start they share with the one before, if they
share much. Encodings are only those that every engine of docs/engines.md reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap, takewhile
from operator import eq
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from archiver.storage.parquet.leaves import Leaf
from schema_mapping import names

OFFSET: Final = f"{names.KAFKA}.{names.OFFSET}"
DIFFERENCES: Final = "DELTA_BINARY_PACKED"
SHARED_STARTS: Final = "DELTA_BYTE_ARRAY"
ALWAYS_DIFFERENCES: Final = (OFFSET, f"{names.KAFKA}.{names.EVENT_TIMESTAMP}")
"""Columns that rise by small steps: delta encoding beats a dictionary of as many entries as rows."""
NEVER_DICTIONARY: Final = (f"{names.VAL}.{names.RAW}",)
"""Columns whose values rarely repeat, however they begin."""

SAMPLE: Final = 16_384
ENOUGH: Final = 1_024
"""Values of a sample below which it says nothing."""
REPEATING: Final = 0.75
"""Distinct values of a sample, as a share, up to which they repeat enough for a dictionary."""
UNIQUE: Final = 0.99
"""From this share on, more values would only be more that don't repeat."""
SHORT: Final = 64
"""Bytes of a string, on average, up to which a start it shares with another is worth looking for."""
PAIRS: Final = 256
"""Neighbouring strings of a sample that are compared."""
SHARED: Final = 0.5
"""Share of their bytes from which shared starts are left out: compression finds less almost as well, and faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encodings:
    """Paths of the columns that get a dictionary, and of those with an encoding of their own; the rest is plain.

    `long` are those of long strings: what is left for the compression to find is in them. In `constant` ones, numbers
    of one value or none, nothing is left. Strings that are all null at first may be whole messages later.
    """

    dictionary: tuple[str, ...]
    special: dict[str, str]
    long: frozenset[str]
    constant: frozenset[str] = frozenset()


def choose_encodings(leaves: Sequence[Leaf], rows: pa.RecordBatch) -> Encodings:
    """Choose by the first `rows` of a file; with too few of them, dictionaries nearly everywhere."""
    dictionary: list[str] = []
    special: dict[str, str] = {}
    long, constant = set(), set()
    for leaf, values in zip(leaves, _leaf_values(rows.columns), strict=True):
        match _choice(leaf, values):
            case "dictionary":
                dictionary.append(leaf.path)
            case "plain":
                pass
            case encoding:
                special[leaf.path] = encoding
        if _is_string(leaf.type) and not _is_short(values):
            long.add(leaf.path)
        if not _is_string(leaf.type) and _is_constant(values):
            constant.add(leaf.path)
    return Encodings(dictionary=tuple(dictionary), special=special, long=frozenset(long), constant=frozenset(constant))


def _choice(leaf: Leaf, values: pa.Array) -> str:
    if leaf.name in ALWAYS_DIFFERENCES:
        return DIFFERENCES
    if leaf.name in NEVER_DICTIONARY:
        return "plain"
    # Iceberg's vectorized reader, which Spark uses where all columns asked for lie at the top, knows fewer encodings
    if "." not in leaf.name or _repeat(values):
        return "dictionary"
    if _is_delta_encodable(leaf.type):
        return DIFFERENCES
    return SHARED_STARTS if _is_string(leaf.type) and _is_short(values) and _share_starts(values) else "plain"


def _repeat(values: pa.Array) -> bool:
    """Whether the values repeat, or are too few to tell. The first of them often say enough."""
    sample = values.slice(0, SAMPLE).drop_null()
    for size in (ENOUGH, 4 * ENOUGH, SAMPLE) if len(sample) >= ENOUGH else ():
        part = sample.slice(0, size)
        share = pc.count_distinct(part).as_py() / len(part)
        if not REPEATING < share < UNIQUE:
            return bool(share <= REPEATING)
    return len(sample) < ENOUGH


def _is_constant(values: pa.Array) -> bool:
    sample = values.slice(0, SAMPLE)
    if len(sample) < ENOUGH or sample.null_count:
        return len(sample) >= ENOUGH and sample.null_count == len(sample)
    return bool(pc.all(pc.equal(sample, sample[0])).as_py())


def _share_starts(strings: pa.Array) -> bool:
    """Whether a string begins as the one before it does for much of its length, on average."""
    sample = strings.slice(0, SAMPLE).drop_null().slice(0, PAIRS).cast(pa.binary()).to_pylist()
    return sum(starmap(_shared, pairwise(sample))) >= SHARED * sum(map(len, sample[1:]))


def _shared(one: bytes, other: bytes) -> int:
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def _is_delta_encodable(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _is_short(strings: pa.Array) -> bool:
    average = pc.mean(pc.binary_length(strings.slice(0, SAMPLE))).as_py()
    return average is None or average <= SHORT


def _leaf_values(columns: Sequence[pa.Array]) -> Iterator[pa.Array]:
    """The values of each leaf column, in the order of `leaves_of`."""
    for column in columns:
        kind = column.type
        if pa.types.is_struct(kind):
            yield from _leaf_values([column.field(index) for index in range(kind.num_fields)])
        elif pa.types.is_map(kind):
            first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
            yield from _leaf_values([each.slice(first, last - first) for each in (column.keys, column.items)])
        elif pa.types.is_nested(kind):
            yield from _leaf_values([column.flatten()])
        else:
            yield column.storage if isinstance(column, pa.ExtensionArray) else column
