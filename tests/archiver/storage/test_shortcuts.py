"""Shortcuts of a reader lose nothing."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.archive.assemble import Assembler
from archiver.archive.mappings import KnownMappings
from archiver.errors import StorageDenied, StorageError
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.parquet.file_end import TAIL
from archiver.storage.segment import SegmentLayout, SegmentReader
from archiver.storage.spool_file import SpoolFile
from schema_mapping import RawMapping, RowMapping, compile_mapping
from schema_mapping.columns.arrow import IN_DICTIONARY
from schema_mapping.columns.fixed import HEADERS_ID, KAFKA_ID, KEY_ID, VAL_ID
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.proto_text import descriptor_of

OBJECTS = ObjectStore.of({})
WHOLE = frozenset((KEY_ID, VAL_ID, HEADERS_ID, KAFKA_ID))
TEXT = """
message M { string s = 1; N one = 2; repeated N ns = 3; map<string, N> m = 4; repeated string l = 5; N no = 6; }
message N { optional string s = 1; optional int32 i = 2; O o = 3; E e = 4; }
message O { repeated int64 n = 1; }
enum E { Z = 0; A = 1; }
"""


def message() -> MessageMapping:
    descriptor = descriptor_of(TEXT)
    counted = compile_mapping(descriptor).ids
    ids = replace(
        counted, columns=tuple(replace(column, field_id=column.field_id + 1_000) for column in counted.columns)
    )
    return compile_mapping(descriptor, ids=ids)


MESSAGE = message()
ROWS = RowMapping(key=RawMapping(raw_id=100), value=MESSAGE, schema_version=1)
COUNT = 400


def drawn(kind: pa.DataType, draw: random.Random, share: float) -> Any:
    if pa.types.is_struct(kind):
        return {field.name: _member(field, draw, share) for field in kind}
    if pa.types.is_map(kind):
        return [(f"k{at}", drawn(kind.item_type, draw, share)) for at in range(draw.randrange(3))]
    if pa.types.is_list(kind):
        return [drawn(kind.value_type, draw, share) for _ in range(draw.randrange(3))]
    return str(draw.randrange(5)) if pa.types.is_string(kind) else draw.randrange(9)  # an enum takes numbers, too


def _member(field: pa.Field, draw: random.Random, share: float) -> Any:
    if field.name.startswith("__") or int(field.metadata[b"PARQUET:field_id"]) % 3 == int(share * 10) % 3:
        return None
    return drawn(field.type, draw, share) if draw.random() < share else None


def file_of(path: Path, values: pa.StructArray) -> str:
    rows = pa.RecordBatch.from_pylist(
        [
            {
                "key": {"__raw__": b"k"},
                "headers": [],
                "kafka": {"partition": 0, "offset": at, "schema_version": 1, "timestamp_type": 0},
            }
            for at in range(len(values))
        ],
        schema=ROWS.arrow_schema,
    )
    rows = rows.set_column(rows.schema.get_field_index("val"), ROWS.arrow_schema.field("val"), values)
    writer = ParquetFormat().start(SpoolFile.create(path), SegmentLayout.of_mapping(ROWS, {}))
    writer.write(rows)
    writer.close(origin=None, path="x")
    return path.as_uri()


@pytest.fixture(params=[(seed, share) for seed in range(4) for share in (0.0, 0.02, 0.6, 1.0)], ids=str)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    seed, share = request.param
    draw = random.Random(seed)
    kind = MESSAGE.arrow_type
    values = pa.array([drawn(kind, draw, share) if draw.random() < 0.9 else None for _ in range(COUNT)], kind)
    return file_of(tmp_path / "a.parquet", values)


def test_what_is_left_out_is_null_and_the_rest_is_as_it_is(path: str) -> None:
    with ParquetFormat().open(OBJECTS, path) as reader:
        (block,) = reader.blocks()
        without = reader.null_columns(block, WHOLE)
        whole = pa.Table.from_batches(reader.read(block))
        light = pa.Table.from_batches(reader.read(block, WHOLE, without=without))
    assert without, "at least `__raw__` of the values"
    assert _emptied(whole, without).select(light.schema.names).to_pylist() == whole.to_pylist()
    assert [_without(field, without) for field in whole.schema] == [_plain(field) for field in light.schema]


def _emptied(whole: pa.Table, identifiers: frozenset[int]) -> pa.Table:
    def emptied(field: pa.Field, array: pa.Array) -> pa.Array:
        if int((field.metadata or {}).get(b"PARQUET:field_id", 0)) in identifiers:
            return pa.nulls(len(array), array.type)
        if pa.types.is_struct(field.type):
            inside = [emptied(value, array.field(at)) for at, value in enumerate(field.type)]
            return pa.StructArray.from_arrays(inside, fields=list(field.type), mask=array.is_null())
        if pa.types.is_map(field.type):
            items = emptied(field.type.item_field, array.items)
            return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=field.type, mask=array.is_null())
        if pa.types.is_list(field.type):
            inner = emptied(field.type.value_field, array.values)
            return pa.ListArray.from_arrays(array.offsets, inner, type=field.type, mask=array.is_null())
        return array

    (batch,) = whole.combine_chunks().to_batches()
    return pa.table(
        [emptied(field, batch.column(at)) for at, field in enumerate(whole.schema)], names=whole.schema.names
    )


def _plain(field: pa.Field) -> Any:
    return _without(field, frozenset())


def _without(field: pa.Field, identifiers: frozenset[int]) -> Any:
    kind = field.type
    if pa.types.is_struct(kind):
        kept = [item for item in kind if int((item.metadata or {}).get(b"PARQUET:field_id", 0)) not in identifiers]
        return field.name, [_without(value, identifiers) for value in kept]
    if pa.types.is_map(kind):
        return field.name, "map", _without(kind.key_field, identifiers)[1:], _without(kind.item_field, identifiers)[1:]
    if pa.types.is_list(kind):
        return field.name, "list", _without(kind.value_field, identifiers)[1:]
    return field.name, str(kind)


def test_values_are_encoded_alike_in_both_ways(path: str) -> None:
    with ParquetFormat().open(OBJECTS, path) as reader:
        (block,) = reader.blocks()
        mappings = KnownMappings("topic")
        mappings.learn(reader.metadata)
        assembler = Assembler(path, reader.schema, mappings)
        without = reader.null_columns(block, assembler.omissible_ids)
        plain = _records(assembler, reader, frozenset())
        light = _records(assembler, reader, without, in_dictionaries=True)
    assert light.num_rows == COUNT
    assert light.equals(plain)


def _records(
    assembler: Assembler, reader: SegmentReader, without: frozenset[int], *, in_dictionaries: bool = False
) -> pa.Table:
    (block,) = reader.blocks()
    result = reader.read(block, assembler.field_ids, without=without, in_dictionaries=in_dictionaries)
    return pa.Table.from_batches(
        [assembler.records(rows, assembler.kafka(rows, without), without) for rows in result]
    ).combine_chunks()


def test_texts_of_small_dictionaries_stay_there(tmp_path: Path) -> None:
    values = [
        {"s": "few", "l": [f"{at} of very many texts, each of them only once" for _ in (0, 1)]} for at in range(COUNT)
    ]
    path = file_of(tmp_path / "a.parquet", pa.array(values, MESSAGE.arrow_type))
    with ParquetFormat().open(OBJECTS, path) as reader:
        (block,) = reader.blocks()
        (batch,) = reader.read(block, frozenset((VAL_ID,)), in_dictionaries=True)
        (plain,) = reader.read(block, frozenset((VAL_ID,)))
    kind = batch.schema.field("val").type
    assert kind.field("s").type == IN_DICTIONARY
    assert kind.field("__err__").type == pa.string()
    assert batch.column("val").cast(plain.column("val").type).equals(plain.column("val"))


def test_a_file_without_a_checksum_of_its_footer_proves_nothing(path: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.parquet"
    pq.write_table(pq.read_table(path.removeprefix("file://")), copy)
    with ParquetFormat().open(OBJECTS, copy.as_uri()) as reader:
        (block,) = reader.blocks()
        assert reader.null_columns(block, WHOLE) == frozenset()
        (batch, *_) = reader.read(block, WHOLE, in_dictionaries=True)
    assert batch.schema.field("val").type.field("s").type == pa.string()


class Expiring:
    def __init__(self, reads: int) -> None:
        self._reads = reads
        self.renewals = 0
        self.current = ()

    def open(self, path: str) -> Any:
        left = iter(range(self._reads))

        class Stream(io.BytesIO):
            def read(self, size: int | None = -1, /) -> bytes:
                if next(left, None) is None:
                    raise PermissionError("ExpiredToken")
                return super().read(size)

        return pa.PythonFile(Stream(Path(path.removeprefix("file://")).read_bytes()), mode="r")

    def opened(self, path: str, stream: object) -> Any:
        return OBJECTS.look(path)

    def renew(self, failure: StorageError, used: object) -> None:
        assert isinstance(failure, StorageDenied)
        self.renewals += 1


@pytest.fixture
def large(tmp_path: Path) -> str:
    draw = random.Random(7)
    template = {"s": "x", "l": []}
    rows = [template | {"s": str(at % 5), "l": [draw.randbytes(40).hex()]} for at in range(6_000)]
    path = file_of(tmp_path / "large.parquet", pa.array(rows, MESSAGE.arrow_type))
    assert Path(path.removeprefix("file://")).stat().st_size > 2 * TAIL
    return path


@pytest.mark.parametrize("renewals", [0, 1])
@pytest.mark.parametrize("in_dictionaries", [False, True])
def test_a_file_is_opened_again_where_credentials_end(large: str, renewals: int, *, in_dictionaries: bool) -> None:
    objects = Expiring(2 - renewals)  # the footer takes one read, the row group another
    with ParquetFormat().open(OBJECTS, large) as reader:
        (block,) = reader.blocks()
        expected = pa.Table.from_batches(reader.read(block, in_dictionaries=in_dictionaries))
    kind = expected.schema.field("val").type
    assert (kind.field("s").type == IN_DICTIONARY) is in_dictionaries
    with ParquetFormat().open(cast("ObjectStore", objects), large) as reader:
        batches = pa.Table.from_batches(reader.read(block, in_dictionaries=in_dictionaries))
    assert batches.equals(expected)
    assert objects.renewals == renewals


def test_a_reader_closes_once_however_often_it_was_read(large: str) -> None:
    reader = ParquetFormat().open(OBJECTS, large)
    (block,) = reader.blocks()
    for in_dictionaries in (True, False, True):
        assert sum(batch.num_rows for batch in reader.read(block, in_dictionaries=in_dictionaries)) == 6_000
    reader.close()
    reader.close()
    ParquetFormat().open(OBJECTS, large).close()
