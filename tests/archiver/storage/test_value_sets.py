"""Value sets in data files."""

from __future__ import annotations

import gc
import json
import random
import tracemalloc
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.parquet.bloom_filters import FilterSize
from archiver.storage.parquet.columns.file_writer import FileWriter
from archiver.storage.parquet.compact_thrift import ThriftError
from archiver.storage.parquet.encodings import choose_encodings
from archiver.storage.parquet.file_end import FileEnd
from archiver.storage.parquet.index_blob import LARGEST, MOST_UNPACKED, BlobPlace, IndexBlob, blob_of
from archiver.storage.parquet.leaves import leaves_of
from archiver.storage.parquet.writer import column_plans, listed_leaves
from archiver.storage.segment import SegmentLayout
from archiver.storage.spool_file import SpoolFile
from archiver.storage.value_sets import (
    FEWEST,
    MOST_VALUES,
    ROWS_OF_VALUE,
    SetLimits,
    SetsOfBlocks,
    ValueSets,
    bytes_of,
)
from catalog.model import DataFileInfo
from catalog.partitioning import PartitionTuple
from catalog.value_terms import MOST_BYTES, Lookup, ValueTerms, term_of
from schema_mapping.columns.arrow import arrow_field
from schema_mapping.columns.fixed import HEADER_KEY_ID, HEADER_VALUE_ID, RAW_HEADER_KEY_ID

KEY_ID = 100
ROWS = 20_000
SCHEMA = pa.schema(
    [
        arrow_field("text", pa.string(), 7),
        arrow_field("octets", pa.binary(), 8),
        arrow_field("long", pa.int64(), 9),
        arrow_field("int", pa.int32(), 10),
        arrow_field("many", pa.list_(arrow_field("element", pa.string(), 12)), 11),
        arrow_field("number", pa.float64(), 13),
        arrow_field("flag", pa.bool_(), 14),
    ]
)
ROWS_OF_TYPES = st.lists(
    st.tuples(
        st.none() | st.text(max_size=3) | st.just("x" * 300),
        st.none() | st.binary(max_size=3),
        st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3),
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.none() | st.lists(st.none() | st.text(max_size=2), max_size=3),
        st.none() | st.floats(),
        st.none() | st.booleans(),
    ),
    max_size=60,
)


EVERYWHERE = SetLimits(share=1, smallest=1)
"""Small files have sets, too."""


def values_of(column: list[Any]) -> set[Any]:
    flat = [item for value in column for item in (value if isinstance(value, list) else [value])]
    return {value.encode() if isinstance(value, str) else value for value in flat if value is not None}


@settings(max_examples=60, deadline=None)
@given(groups=st.lists(ROWS_OF_TYPES, max_size=3))
def test_sets_have_all_values_of_a_file(groups: list[list[tuple[Any, ...]]]) -> None:
    columns = [list(column) for column in zip(*(row for rows in groups for row in rows), strict=True)]
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(SCHEMA)], schema=SCHEMA
        )
        for rows in groups
    ]
    leaves, sink = leaves_of(SCHEMA), pa.BufferOutputStream()
    sample = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=SCHEMA)
    file = FileWriter(
        sink,
        SCHEMA,
        column_plans(leaves, choose_encodings(leaves, sample), 3),
        listed=listed_leaves(leaves),
        limits=EVERYWHERE,
    )
    for batch in batches:
        file.write([batch])
    file.close({})
    for at, identifier in enumerate((7, 8, 9, 10, 12)):
        values = values_of(columns[at]) if columns else set()
        if identifier in file.sets:
            assert file.sets[identifier] == values
        else:
            is_long = any(isinstance(value, bytes) and len(value) > 256 for value in values)
            assert is_long or len(values) > FEWEST or not any(groups)
    assert file.sets.keys() <= {7, 8, 9, 10, 12}
    content = sink.getvalue()
    position = (pq.read_metadata(pa.BufferReader(content)).metadata or {}).get(b"archiver.index")
    if position is not None:
        parsed = BlobPlace.parse(position).read(content.size, lambda start, end: content[start:end].to_pybytes())
        assert parsed.sets.by_field == file.sets
    assert pq.read_table(pa.BufferReader(content)).num_rows == sum(map(len, groups))


def written(
    path: Path,
    archive: Any,
    *,
    keys: int = 50,
    filters: dict[int, float] | None = None,
    limits: SetLimits | None = SetLimits(),  # noqa: B008 - it can't be changed
) -> DataFileInfo:
    values = random.Random(1)
    batch = archive.batch(
        archive.row(
            offset=number,
            key=b"key-%d" % (number % keys),
            value=values.randbytes(40),
            headers=[(b"h%d" % (number % 3), b"v%d" % (number % 7)), (b"\xff", b"x")],
        )
        for number in range(ROWS)
    )
    with closing(SpoolFile.create(path)) as file:
        layout = SegmentLayout.of_mapping(archive.rows, {}, filters or {})
        segment = ParquetFormat().start(file, replace(layout, set_limits=limits))
        segment.write(batch)
        return segment.close(origin=None, path=path.as_uri(), partition=PartitionTuple.of_time(0))


def test_a_file_has_sets_of_keys_and_headers(tmp_path: Path, archive: Any) -> None:
    path = tmp_path / "rows.parquet"
    info = written(path, archive)
    with ParquetFormat().open(ObjectStore(), path.as_uri()) as reader:
        sets = reader.value_sets
    assert sets.values(KEY_ID) == {b"key-%d" % number for number in range(50)}
    assert sets.values(HEADER_VALUE_ID) == {b"x", *(b"v%d" % number for number in range(7))}
    names = (sets.values(HEADER_KEY_ID) or set()) | (sets.values(RAW_HEADER_KEY_ID) or set())
    assert {b"h0", b"h1", b"h2", b"\xff"} <= names
    assert info.values == ValueTerms.of_sets(sets.by_field)
    assert "values" not in info.to_json()


def test_a_column_with_many_values_has_no_set(tmp_path: Path, archive: Any) -> None:
    written(tmp_path / "rows.parquet", archive, keys=MOST_VALUES + 1)
    with ParquetFormat().open(ObjectStore(), (tmp_path / "rows.parquet").as_uri()) as reader:
        assert reader.value_sets.values(KEY_ID) is None
        assert reader.value_sets.may_have(KEY_ID, b"nothing")


def test_sets_take_little_and_other_readers_skip_them(tmp_path: Path, archive: Any) -> None:
    with_sets, without = tmp_path / "with.parquet", tmp_path / "without.parquet"
    written(with_sets, archive, keys=900)
    written(without, archive, keys=900, limits=None)
    size = without.stat().st_size
    assert size < with_sets.stat().st_size <= size * 1.02
    footers = [pq.read_metadata(path).serialized_size for path in (with_sets, without)]
    assert footers[0] - footers[1] <= 200
    assert pq.read_table(with_sets).equals(pq.read_table(without))
    sums = [duckdb.sql(f"SELECT count(*), sum(hash(t)) FROM '{path}' AS t").fetchone() for path in (with_sets, without)]
    assert sums[0] == sums[1]


def test_damaged_sets_are_left_out(tmp_path: Path, archive: Any, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "rows.parquet"
    written(path, archive)
    content = path.read_bytes()
    start, size, _ = (int(part, 16 if at == 2 else 10) for at, part in enumerate(place_of(path).split(":")))
    damaged = tmp_path / "damaged.parquet"
    for at in range(start, start + size, max(1, size // 100)):
        damaged.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        with ParquetFormat().open(ObjectStore(), damaged.as_uri()) as reader:
            assert reader.value_sets == ValueSets()
            assert sum(batch.num_rows for batch in reader.read(reader.blocks()[0])) == ROWS
    assert "are left out" in caplog.text


def place_of(path: Path) -> str:
    position: bytes = pq.read_metadata(path).metadata[b"archiver.index"]
    return position.decode()


def test_a_damaged_filter_hides_nothing(tmp_path: Path, archive: Any, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "rows.parquet"
    written(path, archive, keys=ROWS, filters={KEY_ID: 0.01})
    footer = pq.read_metadata(path)
    leaf = next(leaf for leaf in leaves_of(pq.read_schema(path)) if leaf.field_id == KEY_ID)
    chunk = footer.row_group(0).column(leaf.index)
    content = bytearray(path.read_bytes())
    start, end = chunk.bloom_filter_offset, chunk.bloom_filter_offset + chunk.bloom_filter_length
    draw = random.Random(7)
    for at in draw.sample(range(start, end), 4_000):
        content[at] &= draw.randrange(256)
    path.write_bytes(content)
    with ParquetFormat().open(ObjectStore(), path.as_uri()) as reader:
        (block,) = reader.blocks()
        answers = [reader.may_contain(block, KEY_ID, b"key-%d" % number) for number in range(0, ROWS, 100)]
    assert False not in answers
    assert None in answers
    assert "a bloom filter isn't as it was written" in caplog.text


def test_filters_without_checksums_are_not_used(tmp_path: Path, archive: Any) -> None:
    path = tmp_path / "old.parquet"
    written(path, archive, keys=ROWS, filters={KEY_ID: 0.01})
    with path.open("rb") as file:
        end = FileEnd.read(file)
    footer = bytes(end.footer).replace(b"archiver.index", b"archiver.other")
    assert end.footer_start is not None
    body = path.read_bytes()[: end.footer_start - 12]
    path.write_bytes(body + FileEnd.of_footer(footer).with_checksum)
    with ParquetFormat().open(ObjectStore(), (tmp_path / "old.parquet").as_uri()) as reader:
        assert reader.value_sets == ValueSets()
        assert reader.may_contain(reader.blocks()[0], KEY_ID, b"nothing") is None


@given(st.binary(max_size=60))
def test_other_bytes_are_no_blob(data: bytes) -> None:
    with pytest.raises(ThriftError):
        IndexBlob.parse(data)


def test_a_blob_is_unpacked_up_to_a_limit() -> None:
    for options in ({}, {"write_content_size": False}):
        bomb = zstandard.ZstdCompressor(**options).compress(bytes(LARGEST + 1))
        with pytest.raises(ThriftError):
            IndexBlob.parse(bomb)
    position = BlobPlace(4, LARGEST + 1, 0)
    with pytest.raises(ThriftError):
        position.read(LARGEST * 2, lambda _start, _end: pytest.fail("it is read"))


def test_sets_of_a_large_file_are_bounded() -> None:
    sets = {number: frozenset(range(number * 1_000, number * 1_000 + 1_000)) for number in range(1, 300)}
    blob, kept = blob_of(sets, {}, 1 << 40)
    assert 100 < len(kept) < 299
    assert IndexBlob.parse(blob).sets.by_field == kept


@pytest.mark.parametrize("text", [b"", b"1:2", b"1:2:zz", b"-1:5:0", b"\xff", b"1:0:00000000", b"90:20:00000000"])
def test_a_place_outside_of_the_pages_is_refused(text: bytes) -> None:
    with pytest.raises(ThriftError):
        BlobPlace.parse(text).read(100, lambda start, end: b"x" * (end - start))


def test_the_largest_sets_are_left_out_of_a_small_file() -> None:
    draw = random.Random(2)
    sets = {
        1: frozenset({b"a", b"b"}),
        2: frozenset(draw.randbytes(200) for _ in range(500)),
        3: frozenset(range(20)),
    }
    blob, kept = blob_of(sets, {}, SetLimits().bytes_of(64_000))
    assert kept.keys() == {1, 3}
    assert len(blob) <= 1_000
    assert blob_of(sets, {}, SetLimits().bytes_of(16_000)) == (b"", {})


def test_files_with_few_rows_list_few_values() -> None:
    sets = SetsOfBlocks([1, 2])
    assert [sets.most_of(identifier, 100) for identifier in (1, 3, None)] == [FEWEST, -1, -1]
    assert sets.most_of(1, 1 << 20) == MOST_VALUES
    for block in ({1: (1, 2), 2: None}, {1: (2, 3), 2: (1,)}):
        for identifier, distinct in block.items():
            sets.add(identifier, distinct)
        sets.end_block(10)
    assert sets.sets == {1: {1, 2, 3}}
    assert sets.most_of(1, 1_004) == 1_024 // ROWS_OF_VALUE
    sets.add(1, tuple(range(MOST_VALUES + 1)))
    assert sets.sets == {}


@given(
    blocks=st.lists(
        st.dictionaries(st.integers(1, 6), st.lists(st.binary(max_size=9), unique=True) | st.none()), max_size=6
    )
)
def test_sets_of_an_open_file_are_bounded(blocks: list[dict[int, list[bytes] | None]]) -> None:
    sets = SetsOfBlocks(range(1, 7), most_bytes=60)
    values: dict[int, set[bytes]] = {identifier: set() for identifier in range(1, 7)}
    unknown = set()
    for block in blocks:
        for identifier, distinct in block.items():
            sets.add(identifier, None if distinct is None else tuple(distinct))
            values[identifier].update(distinct or ())
            if distinct is None:
                unknown.add(identifier)
            assert sum(map(bytes_of, sets.sets.values())) <= 60
        sets.end_block(20)
    assert all(kept == values[identifier] for identifier, kept in sets.sets.items())
    assert not sets.sets.keys() & unknown
    if sum(map(bytes_of, values.values())) <= 60:
        assert sets.sets.keys() == values.keys() - unknown


def test_the_largest_sets_of_an_open_file_go_first() -> None:
    sets = SetsOfBlocks([1, 2, 3], most_bytes=100)
    sets.add(1, tuple(b"%030d" % number for number in range(2)))
    sets.add(2, (b"x",))
    sets.add(3, tuple(range(11)))
    assert sets.sets.keys() == {2, 3}
    assert [sets.most_of(identifier, 100) for identifier in (1, 2, 3)] == [-1, FEWEST, FEWEST]
    assert SetLimits().most_held >= MOST_UNPACKED


def test_a_written_block_keeps_no_values_and_filters() -> None:
    schema = pa.schema([arrow_field("text", pa.string(), 7)])
    leaves, sink = leaves_of(schema), pa.BufferOutputStream()
    batch = pa.record_batch([pa.array([f"{number % 500:0100}" for number in range(20_000)])], schema=schema)
    sizes = {0: FilterSize(10_000, 0.01)}
    plans = column_plans(leaves, choose_encodings(leaves, batch), 3, filters=sizes)
    file = FileWriter(sink, schema, plans, listed=listed_leaves(leaves), limits=EVERYWHERE)
    file.write([batch])
    gc.collect()
    tracemalloc.start()
    for _ in range(20):
        file.write([batch])
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 500_000, "20 blocks with 500 values of 100 bytes, and a filter"
    file.close({})
    assert len(file.sets[7]) == 500


def test_terms_fit_the_registry() -> None:
    sets: dict[int, frozenset[int | bytes]] = {
        1: frozenset(range(300)),
        2: frozenset({b"a", b""}),
        3: frozenset(range(200)),
        4: frozenset(),
    }
    terms = ValueTerms.of_sets(sets)
    assert terms.columns == (2, 3, 4)
    assert terms.size_bytes <= MOST_BYTES
    assert {term_of(2, "a"), term_of(2, b""), term_of(3, 199)} <= set(terms.terms)
    assert term_of(2, b"a") not in ValueTerms.of_sets({3: frozenset({b"a"})}).terms
    assert term_of(1, 97) != term_of(1, b"a")
    assert Lookup(2, "a").term == term_of(2, b"a")
    assert all(-(2**63) <= term < 2**63 for term in terms.terms)
    json.dumps(terms.terms)
