"""XXH64 of values, in each layout."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from archiver.storage.formats import can_be_hashed, value_hashes
from archiver.storage.parquet.columns.bloom_probe import text_hashes

TEXTS = ["", "a", "abc", "x" * 33, "é"]
KNOWN = {"": 0xEF46DB3751D8E999, "a": 0xD24EC4F1A98C6E5B, "abc": 0x44BC2CF5AD770999}
"""Of the specification's reference implementation, with the seed 0."""


def test_hashes_are_xxh64() -> None:
    hashes = value_hashes(pa.array([*KNOWN])).view(np.uint64).tolist()
    assert hashes == [*KNOWN.values()]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_layouts_of_texts_have_the_same_hashes(kind: pa.DataType) -> None:
    expected = value_hashes(pa.array(TEXTS)).tolist()
    column = pa.array([it.encode() for it in ["cut", *TEXTS, "cut"]], pa.binary()).cast(kind).slice(1, len(TEXTS))
    assert value_hashes(column).tolist() == expected
    assert value_hashes(column.dictionary_encode()).tolist() == expected


def test_numbers_of_all_widths_have_the_same_hashes() -> None:
    wide = value_hashes(pa.array([-1, 0, 7])).tolist()
    assert value_hashes(pa.array([-1, 0, 7], pa.int32())).tolist() == wide
    assert value_hashes(pa.array([7], pa.int32())).tolist() == wide[2:]
    assert wide[2] == value_hashes(pa.array([(7).to_bytes(8, "little")], pa.binary(8))).tolist()[0]


def test_empty_and_null_columns() -> None:
    assert value_hashes(pa.array([], pa.string())).tolist() == []
    assert len(value_hashes(pa.array([None, "a"]))) == 2


def test_other_types_are_refused() -> None:
    assert not can_be_hashed(pa.float64())
    with pytest.raises(pa.ArrowException, match="have no hashes"):
        value_hashes(pa.array([0.5]))


@pytest.mark.parametrize("offsets", [[0, 5], [1, 0], [-1, 1], [0]])
def test_the_kernel_refuses_offsets_outside(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match=r"offset"):
        text_hashes(np.array(offsets, np.int64), np.zeros(3, np.uint8), np.zeros(1, np.uint64))
