"""Rows of a topic's columns: the judges' bytes, and what is refused by name."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from archiver.errors import BadBatch, RowsRefused
from archiver.intake.row_encoding import RowEncoding
from tests.support.intake.encodings import RAW, avro, encoding_of, json_schema, records_of, values_of
from tests.support.schemas.order_schema import ORDER_PROTO, order_class
from tests.support.schemas.proto_text import compile_text, descriptor_of
from tests.support.schemas.sent_columns import sent_type
from tests.support.schemas.strategies_avro import written
from tests.support.schemas.upb_judge import message_class

SENSOR = """
message M {
  string device = 1; double temperature = 2; optional int32 retries = 3; repeated string tags = 4;
  oneof place { string room = 5; int64 floor = 6; }
  enum State { OK = 0; WORN = 1; } State state = 7; map<string, int32> counters = 8;
}
"""


def sensors(**settings: Any) -> RowEncoding:
    return encoding_of(compile_text(SENSOR), **settings)


def test_rows_become_messages_as_google_writes_them() -> None:
    message = message_class(descriptor_of(f'syntax = "proto3"; package t; {SENSOR}'))
    batch = pa.record_batch(
        {
            "temperature": pa.array([21.5, None, 0.0], pa.float32()),
            "tags": pa.array([["a", ""], None, []], pa.large_list(pa.string_view())),
            "device": pa.array(["d1", "d2", ""]).dictionary_encode(),
            "retries": pa.array([0, None, -1], pa.int8()),
            "room": ["r", None, None],
            "floor": pa.array([None, 7, None], pa.uint32()),
            "state": ["WORN", "OK", "77"],
            "counters": pa.array([[("x", 1)], None, []], pa.map_(pa.string(), pa.int16())),
        }
    )
    expected: list[Any] = [
        {"device": "d1", "temperature": 21.5, "retries": 0, "tags": ["a", ""], "room": "r", "state": 1}
        | {"counters": {"x": 1}},
        {"device": "d2", "floor": 7},
        {"retries": -1, "state": 77},
    ]
    assert values_of(batch, sensors()) == [message(**row).SerializeToString(deterministic=True) for row in expected]


def test_nested_rows_become_messages() -> None:
    money = {"currency": "EUR", "units": 3}
    line = {"sku": "s", "quantity": 2, "price": money, "tags": ["t"]}
    orders: list[Any] = [{"customer": "c", "lines": [line, {}], "address": {"street": "x"}, "ratings": [1.5]}, {}]
    encoding = encoding_of(compile_text(ORDER_PROTO, "shop.Order"))
    batch = pa.RecordBatch.from_struct_array(pa.array(orders, sent_type(encoding.row.value.arrow_type)))
    assert values_of(batch, encoding) == [order_class()(**order).SerializeToString() for order in orders]


def test_rows_become_avro_as_fastavro_writes_it() -> None:
    union: list[Any] = ["null", "string", "int"]
    schema = avro(
        device="string",
        choice=union,
        price={"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        at={"type": "long", "logicalType": "timestamp-millis"},
        id={"type": "string", "logicalType": "uuid"},
        state={"type": "enum", "name": "E", "symbols": ["A", "B"]},
        code={"type": "fixed", "name": "F", "size": 2},
        nested=["null", {"type": "record", "name": "N", "fields": [{"name": "x", "type": ["null", "long"]}]}],
    )
    number = UUID(int=7)
    choice = pa.struct([("int", pa.int16()), ("string", pa.string())])
    batch = pa.record_batch(
        {
            "device": ["a", "b"],
            "choice": pa.array([{"int": 4}, None], choice),
            "price": pa.array([Decimal("1.25"), Decimal(-1)], pa.decimal128(5, 2)),
            "at": pa.array([1, 2], pa.timestamp("s", "Europe/Berlin")),
            "id": pa.array([number.bytes] * 2, pa.binary(16)),
            "state": ["B", "A"],
            "code": pa.array([b"xy", b"zz"], pa.binary(2)),
            "nested": pa.array([{"x": 5}, None]),
        }
    )
    rows: list[Any] = [
        {"device": "a", "choice": 4, "price": Decimal("1.25"), "at": 1_000, "state": "B", "code": b"xy"}
        | {"nested": {"x": 5}, "id": str(number)},
        {"device": "b", "choice": None, "price": Decimal("-1.00"), "at": 2_000, "state": "A", "code": b"zz"}
        | {"nested": None, "id": str(number)},
    ]
    assert values_of(batch, encoding_of(schema)) == [written(json.loads(schema.writers[0]), row) for row in rows]


def test_rows_become_compact_json_without_nulls() -> None:
    encoding = encoding_of(
        json_schema(
            device={"type": "string"},
            temperature={"type": "number"},
            place={"type": "object", "properties": {"room": {"type": "string"}, "floor": {"type": "integer"}}},
            tags={"type": "array", "items": {"type": "string"}},
        )
    )
    rows: list[Any] = [
        {"device": 'ü"\n', "temperature": 0.1, "place": {"floor": 2}, "tags": ["a", None]},
        {"place": {}, "tags": []},
        {},
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.RecordBatch.from_pylist(rows).schema)
    expected = [json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode() for row in rows]
    assert values_of(batch, encoding) == expected


def test_whole_numbers_of_json_have_no_fraction() -> None:
    encoding = encoding_of(json_schema(x={"type": "number"}))
    assert values_of(pa.record_batch({"x": [7.0, -0.0, 1e300]}), encoding) == [b'{"x":7}', b'{"x":-0}', b'{"x":1e+300}']


def test_members_of_null_structs_are_null() -> None:
    """Arrow lets them have any value. A union's kernel reads its branches alone."""
    hidden = pa.StructArray.from_arrays(
        [pa.array(["x", "y"]), pa.array([[1], [2, 3]])], ["string", "array"], mask=pa.array([True, False])
    )
    schema = avro(choice=["null", "string", {"type": "array", "items": "long"}])
    with pytest.raises(BadBatch, match=r"read back as another one.*row=1"):
        values_of(pa.record_batch({"choice": hidden}), encoding_of(schema))
    assert values_of(pa.record_batch({"choice": hidden.slice(0, 1)}), encoding_of(schema)) == [b"\0"]


def test_null_lists_have_no_elements() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), pa.array(["a", "b", "c"]))
    validity = pa.py_buffer(b"\x02")
    hidden = pa.ListArray.from_buffers(lists.type, 2, [validity, lists.buffers()[1]], children=[lists.values])
    assert values_of(pa.record_batch({"tags": hidden}), sensors()) == [b"", b'"\x01c']


@pytest.mark.parametrize(
    ("column", "key"),
    [
        (pa.array(["d1", None]), [b"d1", None]),
        (pa.array(["d1", "d2"], pa.large_string()), [b"d1", b"d2"]),
    ],
    ids=["string", "large"],
)
def test_a_column_has_the_keys(column: pa.Array, key: list[bytes | None]) -> None:
    records = records_of(pa.record_batch({"device": column}), sensors(key_column="device"))
    assert records.column("key").to_pylist() == key
    assert records.column("value").null_count == 0


def test_whole_numbers_are_keys_as_text() -> None:
    records = records_of(pa.record_batch({"floor": [7, -1]}), sensors(key_column="floor"))
    assert records.column("key").to_pylist() == [b"7", b"-1"]


def test_keys_headers_and_times_have_columns() -> None:
    headers = pa.array([[("k", b"v")], None], pa.map_(pa.string(), pa.binary()))
    times = pa.array([5, None], pa.timestamp("ms"))
    batch = pa.record_batch(
        {"device": ["a", "b"], "__key__": ["x", None], "__headers__": headers, "__timestamp__": times}
    )
    assert records_of(batch, sensors()).select(["timestamp", "key", "headers"]).to_pylist() == [
        {"timestamp": 5, "key": b"x", "headers": [{"key": b"k", "value": b"v"}]},
        {"timestamp": -1, "key": None, "headers": []},
    ]


def test_keys_with_a_schema_are_structs() -> None:
    key = avro(number="int")
    batch = pa.record_batch({"device": ["a", "b"], "__key__": pa.array([{"number": 3}, None])})
    batch = batch.set_column(1, "__key__", batch.column(1).cast(pa.struct([("number", pa.int32())])))
    assert records_of(batch, sensors(key=key)).column("key").to_pylist() == [b"\x06", None]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"temprature": [1.5]}, r"\+ val.temprature double is no column .* did you mean temperature"),
        ({"retries": [1]}, r"! val.retries \(id \d+\) long takes the place of the int column"),
        ({"temperature": ["1"]}, r"! val.temperature \(id \d+\) string takes the place of the double column"),
        ({"tags": [[1]]}, r"! val.tags.element \(id \d+\) long takes the place of the string column"),
        ({"tags": ["a"]}, r"! val.tags \(id \d+\) string takes the place of the list column"),
        ({"tags": pa.array([["a"]], pa.list_view(pa.string()))}, "list_view<item: string> takes the place of the list"),
        ({"counters": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}, "counters.value .* long takes the"),
        ({"state": [1]}, "long takes the place of the string column"),
        ({"device": ["a"], "__raw__": [b"x"]}, r"\+ val.__raw__ binary is no column"),
        ({"device": ["a"], "__key__": [1]}, "the column __key__ must be binary or string, and is int64"),
        ({"device": ["a"], "__timestamp__": ["now"]}, "the column __timestamp__ must be a timestamp"),
    ],
)
def test_columns_that_do_not_fit_are_named(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(BadBatch, match=message):
        records_of(pa.record_batch(columns), sensors())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"room": ["a", "b"], "floor": [None, 1]}, r"read back as another one.*row=1, column='val.room'"),
        ({"state": ["OK", "GONE"]}, "neither a name of the enum nor a number.*row=1"),
        ({"state": ["OK", "1"]}, "a text isn't in the schema's own form.*row=1, column='val.state'"),
        ({"tags": [["a"], ["b", None]]}, "an element is null, and may not be.*column='val.tags.element', row=1"),
        (
            {"counters": pa.array([[("b", 2)], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32()))},
            "a map has a key twice.*row=1, column='val.counters'",
        ),
    ],
)
def test_values_that_cannot_be_kept_are_named(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(BadBatch, match=message):
        records_of(pa.record_batch(columns), sensors())


@pytest.mark.parametrize(
    ("kind", "column", "message"),
    [
        (
            "string",
            pa.array(["a", None]),
            "a column is null that the schema of the row's writer has a value for.*row=1",
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            pa.array([1_000, 1_001], pa.timestamp("ns", "UTC")),
            "a value has no equal one of the type timestamp.*column='val.x', row=1",
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            pa.array([1_000, 1_001], pa.timestamp("us", "UTC")),
            "a column holds a value that the type of the row's writer can't have.*row=1, column='x'",
        ),
    ],
    ids=["null", "nanoseconds", "microseconds"],
)
def test_avro_values_that_cannot_be_kept_are_named(kind: Any, column: pa.Array, message: str) -> None:
    with pytest.raises(BadBatch, match=message):
        records_of(pa.record_batch({"x": column}), encoding_of(avro(x=kind)))


def test_required_fields_of_protobuf_are_not_null() -> None:
    proto = """
    syntax = "proto2"; package t;
    message Place { required string room = 1; optional int32 floor = 2; }
    message M { required string device = 1; optional Place place = 2; repeated Place places = 3; }
    """
    encoding = encoding_of(compile_text(proto))
    kind = pa.struct([("floor", pa.int32()), ("room", pa.string())])
    rooms = pa.array([None, {"room": "r"}], kind)
    batch = pa.record_batch({"device": ["a", "b"], "place": rooms, "places": pa.array([[], None], pa.list_(kind))})
    assert values_of(batch, encoding) == [b"\n\x01a", b"\n\x01b\x12\x03\n\x01r"]
    for columns, message in (
        ({"device": ["a", None]}, r"a required field is null.*column='val.device', row=1"),
        ({"place": rooms}, r"a required field is null.*column='val.device', row=0"),
        ({"device": ["a", "b"], "place": pa.array([None, {"floor": 1}], kind)}, r"column='val.place.room', row=1"),
        (
            {"device": ["a", "b"], "places": pa.array([None, [{"room": "r"}, {}]], pa.list_(kind))},
            r"column='val.places.element.room', row=1",
        ),
    ):
        with pytest.raises(BadBatch, match=message):
            values_of(pa.record_batch(columns), encoding)


def test_members_of_one_name_are_refused() -> None:
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    encoding = encoding_of(
        compile_text("message M { Inner i = 1; repeated Inner l = 2; message Inner { int64 a = 1; } }")
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), twice)
    for column, name in ({"i": twice}, "val.i.a"), ({"l": lists}, "val.l.element.a"):
        with pytest.raises(RowsRefused, match=rf"\+ {name} is there twice"):
            records_of(pa.record_batch(column), encoding)


def test_json_has_no_infinite_numbers() -> None:
    encoding = encoding_of(json_schema(x={"type": "number"}))
    with pytest.raises(BadBatch, match=r"a number that JSON can't have.*row=20000, column='x'"):
        records_of(pa.record_batch({"x": [1.0] * 20_000 + [float("inf")]}), encoding, most_bytes=1 << 22)


def test_a_key_column_excludes_other_keys() -> None:
    with pytest.raises(RowsRefused, match="the keys are in the column device: leave out __key__"):
        records_of(pa.record_batch({"device": ["a"], "__key__": ["b"]}), sensors(key_column="device"))


def test_rows_need_a_schema() -> None:
    with pytest.raises(RowsRefused, match="the topic's values have no schema: send the columns `key`, `value`"):
        records_of(pa.record_batch({"device": ["a"]}), RAW)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"device": pa.nulls(60_000)}, "the batch has 60,000 rows, and may have 52,428"),
        ({"device": pa.nulls(30_000)}, "bytes of null columns, and may have 1,048,576"),
        (
            {"lines": pa.array([[{}] * 100_000], pa.list_(pa.struct([])))},
            r"the batch has 2,4\d\d,\d+ bytes of null columns, and may have 1,048,576",
        ),
        ({"device": ["\0" * 600] * 2_000}, "the values need more than `flight.max_message_size`"),
        ({"flags": [[True] * (1 << 20) + [False]]}, "the batch has 1,048,577 elements in lists"),
    ],
)
def test_what_is_encoded_is_bounded(columns: dict[str, Any], message: str) -> None:
    line = {"type": "object", "properties": {"sku": {"type": "string"}, "price": {"type": "number"}}}
    schema = json_schema(
        device={"type": "string"},
        flags={"type": "array", "items": {"type": "boolean"}},
        lines={"type": "array", "items": line},
    )
    with pytest.raises(BadBatch, match=message):
        records_of(pa.record_batch(columns), encoding_of(schema))


def test_nan_and_its_bits_are_kept() -> None:
    odd = pa.Array.from_buffers(pa.float64(), 1, [None, pa.py_buffer(b"\1\0\0\0\0\0\xf8\x7f")])
    assert values_of(pa.record_batch({"temperature": odd}), sensors()) == [b"\x11\1\0\0\0\0\0\xf8\x7f"]
