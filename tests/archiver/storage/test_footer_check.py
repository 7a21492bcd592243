"""Column chunks safe for pyarrow."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.errors import BadSegment
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.parquet.compact_thrift import ThriftError
from archiver.storage.parquet.file_end import FileEnd
from archiver.storage.parquet.footer_check import askable_chunks
from tests.support.storage.footer_flips import every_footer_bit, judged, some_flips

TABLE = pa.table(
    {
        "number": pa.array([1, None, 3] * 40),
        "text": pa.array(["a", None, "c"] * 40),
        "listed": pa.array([[1, 2], [], None] * 40),
        "mapped": pa.array([[("k", 1)], [], None] * 40, pa.map_(pa.string(), pa.int64())),
        "nested": pa.array([{"a": {"b": [True]}, "c": 1.5}] * 120),
        "fixed": pa.array([bytes(16)] * 120, pa.binary(16)),
        "always": pa.array([True, False, True] * 40),
    }
)


def written(table: pa.Table = TABLE, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **{"row_group_size": 50, "compression": "zstd"} | options)
    return out.getvalue()


def footer_of(data: bytes) -> memoryview:
    return FileEnd.read(io.BytesIO(data)).footer


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"write_statistics": False},
        {"store_schema": False, "use_dictionary": False},
        {"version": "1.0", "use_deprecated_int96_timestamps": True},
        {"write_page_index": True, "sorting_columns": [pq.SortingColumn(0)]},
    ],
    ids=str,
)
def test_of_a_sound_footer_all_can_be_asked_for(options: dict[str, Any]):
    data = written(**options)
    footer = pq.read_metadata(io.BytesIO(data))
    assert footer.num_row_groups == 3
    assert askable_chunks(footer_of(data)) == b"\1" * (3 * footer.num_columns)


@pytest.mark.parametrize("table", [TABLE.slice(0, 0), pa.table({f"column {n}": [n] for n in range(600)})])
def test_of_empty_and_wide_ones_too(table: pa.Table):
    data = written(table)
    footer = pq.read_metadata(io.BytesIO(data))
    assert askable_chunks(footer_of(data)) == b"\1" * (footer.num_row_groups * footer.num_columns)


def asked(path: Path) -> int:
    data = path.read_bytes()
    try:
        footer = pq.read_metadata(io.BytesIO(data))
        answers = askable_chunks(footer_of(data))
    except (pa.ArrowException, OSError, UnicodeDecodeError, ThriftError):
        return 0
    if len(answers) != footer.num_row_groups * footer.num_columns:
        return 0
    for position, answer in enumerate(answers):
        if answer:
            chunk = footer.row_group(position // footer.num_columns).column(position % footer.num_columns)
            if chunk.statistics is not None and chunk.statistics.has_min_max:
                assert chunk.statistics.min_raw is not None
    return any(answers)


def described(path: Path) -> int:
    try:
        ParquetFormat().describe(ObjectStore.of({}), path.as_uri(), table_properties={})
    except BadSegment:
        return 0
    return 1


def test_whatever_bit_flips_pyarrow_can_be_asked_for_the_others(tmp_path: Path):
    """Statistics and levels are checked on access, in another process."""
    path = tmp_path / "flipped.parquet"
    path.write_bytes(written())
    flips = some_flips(path.read_bytes(), 4_000)
    result = judged(path, flips, lambda: asked(path))
    assert sum(result) > len(flips) // 3


def fixed() -> pa.Table:
    columns = {
        "id": pa.array([bytes([n]) * 16 for n in range(20)], pa.binary(16)),
        "amount": pa.array([Decimal(n) * 10**15 for n in range(20)], pa.decimal128(20, 2)),
        "name": pa.array(["ä"] * 20),
    }
    kinds = zip(columns.items(), range(101, 104), strict=True)
    fields = [pa.field(name, item.type, metadata={"PARQUET:field_id": str(n)}) for (name, item), n in kinds]
    return pa.table(columns, pa.schema(fields))


def test_of_sound_values_of_a_fixed_size_all_can_be_asked_for():
    for options in ({}, {"store_decimal_as_integer": True}, {"write_statistics": False}):
        assert askable_chunks(footer_of(written(fixed(), **options))) == b"\1" * 3


@pytest.mark.parametrize("judge", [asked, described])
def test_bit_flips_beside_fixed_size_values_end_no_process(tmp_path: Path, judge: Callable[[Path], int]):
    """pyarrow throws if a bound is shorter than the schema says."""
    path = tmp_path / "flipped.parquet"
    path.write_bytes(written(fixed(), store_schema=False))
    result = judged(path, every_footer_bit(path.read_bytes()), lambda: judge(path))
    assert set(result) == {0, 1}


def test_a_bound_of_another_size_than_the_schema_says_is_refused():
    data = bytes(footer_of(written(fixed().select(["id"]), store_schema=False)))
    size = b"\x15\x0e\x15\x20"
    assert data.count(size) == 1
    for value in (15, 17):
        flipped = data.replace(size, size[:3] + bytes((2 * value,)))
        assert askable_chunks(memoryview(flipped)) == b"\0", value


def test_ids_are_cut_to_16_bits_as_in_thrift():
    """Arrow takes 65541 for 5, the upper bound. A wrong size would end the process."""
    data = bytes(footer_of(written(pa.table({"n": pa.array([1, 2, 3])}), store_schema=False)))
    bound = b"\x28\x08" + (3).to_bytes(8, "little")
    assert data.count(bound) == 1
    assert askable_chunks(memoryview(data)) == b"\1"
    right, wrong = b"\x08\x8a\x80\x08\x08" + bound[2:], b"\x08\x8a\x80\x08\x03abc"
    assert askable_chunks(memoryview(data.replace(bound, right))) == b"\1"
    assert askable_chunks(memoryview(data.replace(bound, wrong))) == b"\0"


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff" * 100, b"\x19\xfc" * 9, b"\x29" * 30, b"\x49\x1c"])
def test_what_is_no_footer_is_told_or_has_no_chunk(data: bytes):
    with suppress(ThriftError):
        assert askable_chunks(memoryview(data)) == b""


def test_cut_and_spoilt_footers_are_read_within_their_bounds():
    data = bytes(footer_of(written()))
    whole = askable_chunks(memoryview(data))
    for end in range(len(data)):
        with pytest.raises(ThriftError):
            askable_chunks(memoryview(data[:end]))
    dice = random.Random(3)
    for _ in range(5_000):
        spoilt = bytearray(data)
        for _ in range(dice.randrange(1, 5)):
            spoilt[dice.randrange(len(spoilt))] = dice.randrange(256)
        try:
            assert len(askable_chunks(memoryview(spoilt))) <= 50 * len(whole)
        except ThriftError:
            continue
