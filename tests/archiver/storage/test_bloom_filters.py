"""Bloom filters, read by DuckDB."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from archiver.storage.parquet import ParquetFormat
from archiver.storage.parquet.bloom_filters import FEWEST, FilterSize, filter_sizes
from archiver.storage.parquet.columns.file_writer import FileWriter
from archiver.storage.parquet.encodings import choose_encodings
from archiver.storage.parquet.leaves import leaves_of
from archiver.storage.parquet.writer import GROUP_ROWS, column_plans
from archiver.storage.segment import SegmentLayout
from archiver.storage.spool_file import SpoolFile
from schema_mapping.columns.arrow import arrow_field
from schema_mapping.columns.fixed import OFFSET_ID
from tests.support.storage.filled_rows import rows_of


def column(kind: pa.DataType, number: int, name: str) -> pa.Field:
    return arrow_field(name, kind, number)


TEXT = column(pa.string(), 7, "text")
SCHEMA = pa.schema(
    [
        column(pa.int64(), 12, "top"),
        column(pa.decimal128(20, 0), 13, "money"),
        column(pa.struct([TEXT, column(pa.float64(), 8, "number"), column(pa.bool_(), 9, "flag")]), 2, "val"),
        column(pa.list_(column(pa.string(), 11, "element")), 10, "many"),
        column(pa.int32(), 14, "narrow"),
        column(pa.uuid(), 15, "uuid"),
        column(pa.binary(), 16, "octets"),
        column(pa.binary(8), 17, "fixed"),
    ]
)
"""Plain columns come first: DuckDB's probe counts columns at the top where it should count all."""


def rows(start: int, count: int) -> pa.RecordBatch:
    numbers = range(start, start + count)
    val = pa.StructArray.from_arrays(
        [
            pa.array([f"id-{number}" for number in numbers]),
            pa.array([float(number) for number in numbers]),
            pa.array([number % 2 == 0 for number in numbers]),
        ],
        fields=list(SCHEMA.field("val").type),
    )
    many = pa.array([[str(number)] for number in numbers], SCHEMA.field("many").type)
    money = pa.array([Decimal(number * 1_000_003 % 999_983) for number in numbers], pa.decimal128(20, 0))
    spread = pa.array([number * 1_000_003 % 999_983 for number in numbers], pa.int64())
    uuids = pa.array([number.to_bytes(16, "big") for number in numbers], pa.uuid())
    octets = pa.array([b"\xff" + number.to_bytes(7, "big") for number in numbers], pa.binary())
    columns = [spread, money, val, many, spread.cast(pa.int32()), uuids, octets, octets.cast(pa.binary(8))]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("filters")
    paths = folder / "with.parquet", folder / "without.parquet"
    groups = [rows(start, GROUP_ROWS // 2) for start in (0, GROUP_ROWS // 2)]
    leaves = leaves_of(SCHEMA)
    sizes = filter_sizes(leaves, dict.fromkeys(range(7, 18), 0.01), pa.Table.from_batches(groups[:1]))
    for path, filters in zip(paths, (sizes, {}), strict=True):
        plans = column_plans(leaves, choose_encodings(leaves, groups[0]), 3, filters=filters)
        with pa.OSFile(str(path), "wb") as sink:
            writer = FileWriter(sink, SCHEMA, plans)
            for group in groups:
                writer.write([group])
            writer.close({})
    return paths


def metadata(path: Path) -> list[tuple[Any, ...]]:
    return duckdb.sql(
        f"select row_group_id, path_in_schema, bloom_filter_offset, bloom_filter_length from parquet_metadata('{path}')"
    ).fetchall()


def test_only_columns_that_can_have_one_get_one(written: tuple[Path, Path]) -> None:
    result = {(group, name) for group, name, offset, _ in metadata(written[0]) if offset is not None}
    assert result == {(group, name) for group in (0, 1) for name in ("val, text", "top", "money", "uuid")}
    assert all(offset is None for _, _, offset, _ in metadata(written[1]))


def test_a_filter_is_as_large_as_its_values_ask_for(written: tuple[Path, Path]) -> None:
    sizes = {length for _, _, offset, length in metadata(written[0]) if offset is not None}
    first = pa.Table.from_batches([rows(0, GROUP_ROWS // 2)])
    leaf = next(leave for leave in leaves_of(SCHEMA) if leave.name == "val.text")
    result = filter_sizes([leaf], {7: 0.01}, first)
    assert result == {leaf.index: FilterSize(GROUP_ROWS // 2, 0.01)}
    assert all(0 < size - result[leaf.index].size < 64 for size in sizes)  # a header comes before the bits
    few = filter_sizes([leaf], {7: 0.01}, first.slice(0, 10))[leaf.index]
    assert (few.values, few.size) == (FEWEST, 2048)


def excluded(path: Path, value: int) -> list[bool]:
    probed = duckdb.sql(f"select bloom_filter_excludes from parquet_bloom_probe('{path}', 'top', {value})")
    return [value for (value,) in probed.fetchall()]


def test_filters_exclude_no_present_value_and_most_absent(written: tuple[Path, Path]) -> None:
    present = duckdb.sql(f"select top from '{written[0]}' using sample 50 rows (reservoir, 5)").fetchall()
    assert not any(all(excluded(written[0], value)) for (value,) in present)
    absent = [item for value in range(2_000_000, 2_000_200) for item in excluded(written[0], value)]
    assert sum(absent) >= 0.96 * len(absent)


@pytest.mark.parametrize("name", ["octets", "fixed"])
def test_duckdb_finds_bytes_that_are_no_ascii(written: tuple[Path, Path], name: str) -> None:
    value = b"\xff" + (7).to_bytes(7, "big")
    for path in written:
        assert len(duckdb.execute(f"select top from '{path}' where {name} = ?", [value]).fetchall()) == 1


def test_filters_change_no_row(written: tuple[Path, Path]) -> None:
    with_filters, without = written
    for value, second in ((with_filters, without), (without, with_filters)):
        assert duckdb.sql(f"from '{value}' except all from '{second}'").fetchall() == []


def test_files_have_the_layouts_filters_and_count_them(archive: Any, tmp_path: Path) -> None:
    sizes, filters = [], {OFFSET_ID: 0.01, 999: 0.01}
    for expected in ({}, filters):
        path = tmp_path / f"{len(expected)}.parquet"
        layout = SegmentLayout.of_mapping(archive.rows, archive.properties, expected)
        writer = ParquetFormat().start(SpoolFile.create(path), layout)
        for start in range(0, 2 * GROUP_ROWS, GROUP_ROWS):
            writer.write(rows_of(archive, GROUP_ROWS, start=start))
        writer.write(rows_of(archive, 1))
        events = writer.size_bytes
        info = writer.close(origin=None, path="a")
        assert {name for _, name, offset, _ in metadata(path) if offset} == ({"kafka, offset"} if expected else set())
        sizes.append((events, info.size_bytes))
    filters_of_two = 2 * FilterSize(GROUP_ROWS, 0.01).size
    assert 0 <= sizes[1][0] - sizes[0][0] - filters_of_two < 1_000
    assert sizes[1][1] > sizes[0][1]
