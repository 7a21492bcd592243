"""Whole values: blocks, recursion, keys, envelopes and hostile bytes."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schema_mapping import LedgerState, assign
from schema_mapping.avro.decode import decode
from schema_mapping.avro.mapping import AvroMapping, compile_avro
from schema_mapping.avro.schema import AvroSchema
from schema_mapping.errors import DescriptorError, KernelError
from schema_mapping.value_format import NOT_ONE
from tests.support.schemas.strategies_avro import mapping_of, written

NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "id", "type": "long"}, {"name": "next", "type": ["null", "Node"]}],
}
LISTS = {
    "type": "record",
    "name": "Lists",
    "fields": [
        {"name": "numbers", "type": {"type": "array", "items": "int"}},
        {"name": "names", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
    ],
}


def rows_of(mapping: AvroMapping, values: list[bytes | None], **more: Any) -> pa.StructArray:
    rows = mapping.decode(pa.array(values, pa.binary()), **more)
    rows.validate(full=True)
    assert mapping.encode(rows).to_pylist() == values
    return rows


def varint(number: int) -> bytes:
    number = number << 1 ^ number >> 63
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def sized(items: list[bytes], block: int = 100) -> bytes:
    """Blocks with sizes, as Go's hamba/avro writes them."""
    blocks = (items[at : at + block] for at in range(0, len(items), block))
    return b"".join(varint(-len(part)) + varint(len(b"".join(part))) + b"".join(part) for part in blocks) + b"\0"


@pytest.mark.parametrize("count", [1, 3, 99, 100, 101, 200, 250])
def test_blocks_of_go_have_a_form(count: int) -> None:
    numbers = [varint(number) for number in range(count)]
    names = b"\2a" + sized([b"\2x"] * count)
    value = sized(numbers) + sized([names])
    rows = rows_of(mapping_of(LISTS), [value, b"\0\0", b"\2\2\0\0"])
    assert rows.field("__form__").to_pylist() == ["blocks_100_sized", None, None]
    assert rows.field("__raw__").null_count == 3
    assert rows.field("numbers")[0].as_py() == list(range(count))


@pytest.mark.parametrize(
    "value",
    [
        sized([b"\2"] * 3, block=2) + b"\0",
        sized([b"\2"] * 101, block=101) + b"\0",
        b"\1\x06\2\0\0",
        sized([b"\2"]) + b"\2\2a\0\0",
        varint(-1) + b"\x82\x00" + b"\2\0\0",
    ],
    ids=["short blocks", "a long block", "a wrong size", "both forms", "a long varint"],
)
def test_other_blocks_are_kept_raw(value: bytes) -> None:
    rows = rows_of(mapping_of(LISTS), [value])
    assert rows.field("__raw__")[0].as_py() == value
    assert rows.field("__err__")[0].as_py() is None
    assert rows.field("__form__")[0].as_py() is None


def test_recursive_type_is_cut_whole() -> None:
    mapping = mapping_of(NODE)
    value = written(NODE, {"id": 1, "next": {"id": 2, "next": {"id": 3, "next": None}}})
    rows = rows_of(mapping, [value, b"\2\0"])
    assert [cut.column for cut in mapping.cuts] == ["next"]
    assert rows.field("next").to_pylist() == [{"__unrecognized__": b"\4\2\6\0"}, None]
    assert rows.field("__raw__").null_count == 2


def test_bytes_of_a_cut_type_may_have_any_form() -> None:
    value = b"\2\2\x84\x00\0"
    rows = rows_of(mapping_of(NODE), [value])
    assert rows.field("__raw__")[0].as_py() is None


def test_depth_is_limited() -> None:
    deep = b"\2\2" * 100_000 + b"\2\0"
    rows = rows_of(mapping_of(NODE), [b"\2\2" * 300 + b"\2\0", deep])
    code, offset = rows.field("__err__")[1].as_py().split("@")
    assert rows.field("__err__")[0].as_py() is None
    assert code == "too_deep"
    assert 600 < int(offset) < 2_000


@pytest.mark.parametrize(
    ("schema", "value", "shown"),
    [
        ("string", b"\4hi", "hi"),
        ({"type": "array", "items": "long"}, b"\2\4\0", [2]),
        (["null", "string"], b"\0", None),
        (["null", "string"], b"\2\2a", "a"),
        (["null"], b"\0", None),
        (["string", "long"], b"\2\4", {"string": None, "long": 2, "__unrecognized__": None}),
    ],
    ids=str,
)
def test_value_that_is_no_record_is_one_column(schema: Any, value: bytes, shown: Any) -> None:
    rows = rows_of(mapping_of(json.dumps(schema)), [None, value])
    assert rows.field("value")[1].as_py() == shown
    assert rows.field("__raw__")[1].as_py() is None
    assert not rows[0].is_valid


def test_null_alone_has_no_column() -> None:
    rows = rows_of(mapping_of('"null"'), [b"", b"x"])
    assert rows.field("__raw__").to_pylist() == [None, b"x"]


def test_keys_keep_their_bytes() -> None:
    mapping = assign(LedgerState(), key=AvroSchema.of('"long"'), value=AvroSchema.of('"long"')).row.key
    rows = rows_of(mapping, [b"\4", b"\xff"])  # type: ignore[arg-type]
    assert rows.field("__raw__").to_pylist() == [b"\4", b"\xff"]
    assert rows.field("value").to_pylist() == [2, None]


def test_envelope_is_a_prefix() -> None:
    mapping = mapping_of('"long"')
    values = [b"\0\0\0\0\7\4", b"\0\0\0\0\7", None]
    rows = rows_of(mapping, values, prefix_lengths=np.array([5, 5, 0], np.int32))
    assert rows.field("__prefix__").to_pylist() == [values[0][:5], None, None]  # type: ignore[index]
    assert rows.field("__err__").to_pylist() == [None, "truncated@5", None]


def test_value_of_no_writer_is_a_null_row() -> None:
    rows = mapping_of('"long"').decode(pa.array([b"\4", b"\6"]), which=np.array([NOT_ONE, 0], np.int16))
    assert rows.is_valid().to_pylist() == [False, True]


def test_unknown_writers_are_refused() -> None:
    with pytest.raises(KernelError, match="a writer that the mapping doesn't have"):
        mapping_of('"long"').decode(pa.array([b"\4"]), which=np.array([1], np.int16))


def test_large_binary_is_decoded() -> None:
    mapping = mapping_of(LISTS)
    rows = mapping.decode(pa.array([b"\2\2\0\0", None], pa.large_binary()))
    assert mapping.encode(rows).to_pylist() == [b"\2\2\0\0", None]


def test_memory_of_one_value_is_limited() -> None:
    mapping = mapping_of(LISTS)
    programs = mapping.programs
    small = type(programs)(
        tables=programs.tables,
        root=programs.root,
        outputs=programs.outputs,
        writers=programs.writers,
        value_memory=1_000,
    )
    value = varint(1_000) + b"\2" * 1_000 + b"\0\0"
    rows = decode(pa.array([value, b"\0\0"]), small)
    assert rows.field("__err__").to_pylist()[1] is None
    assert rows.field("__err__").to_pylist()[0].startswith("too_large@")


def test_hostile_maps_take_linear_time() -> None:
    mapping = mapping_of(LISTS)

    def seconds(keys: int) -> float:
        body = b"".join(varint(len(str(key))) + str(key).encode() + b"\0" for key in range(keys // 2)) * 2
        value = b"\0" + varint(keys // 2 * 2) + body + b"\0"
        start = time.process_time()
        rows = rows_of(mapping, [value])
        assert len(rows.field("names")[0]) == keys // 2
        return time.process_time() - start

    seconds(1_000)
    assert seconds(200_000) < 40 * seconds(20_000) + 0.5


def test_empty_and_damaged_values_leave_neighbours_alone() -> None:
    mapping = mapping_of(LISTS)
    good = b"\4\2\4\0\2\2a\2\2x\0\0"
    values = [good, *(good[:at] for at in range(len(good))), good] * 3
    rows = rows_of(mapping, values)
    assert [row == rows[0] for row in rows] == [value == good for value in values]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("f", pa.array([None], pa.int64()), "a column is null that the schema"),
        ("e", pa.array(["C"]), "a text that isn't one of the enum's symbols"),
        ("__form__", pa.array(["writer_7"]), "names a form of writing, or a writer"),
        ("t", pa.array([1], pa.timestamp("us", tz="UTC")), "a value that the type of the row's writer can't have"),
        ("u", pa.nulls(1, pa.struct([pa.field("string", pa.string())])), "none of the branches of a union"),
    ],
    ids=["null", "enum", "form", "time", "union"],
)
def test_altered_rows_are_refused(column: str, value: pa.Array, message: str) -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "f", "type": "long"},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "u", "type": ["string", "int"]},
        ],
    }
    mapping = mapping_of(schema)
    rows = mapping.decode(pa.array([b"\2\0\2\0\2x"]))
    columns = dict(zip([field.name for field in rows.type], rows.flatten(), strict=True))
    columns[column] = pa.nulls(1, rows.type.field("u").type) if column == "u" else value
    altered = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    with pytest.raises(KernelError, match=message) as caught:
        mapping.encode(altered)
    assert caught.value.context["row"] == 0


def test_rows_of_other_columns_are_refused() -> None:
    rows = mapping_of('"long"').decode(pa.array([b"\2"]))
    with pytest.raises(KernelError, match="rows to encode don't have the mapping's type"):
        mapping_of(LISTS).encode(rows)


def test_rows_with_dictionaries_and_large_texts_are_encoded() -> None:
    mapping = mapping_of('"string"')
    rows = mapping.decode(pa.array([b"\2a", b"\2b"]))
    columns = dict(zip([field.name for field in rows.type], rows.flatten(), strict=True))
    columns["value"] = columns["value"].dictionary_encode()
    columns["__raw__"] = columns["__raw__"].cast(pa.large_binary())
    read = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    assert mapping.encode(read).to_pylist() == [b"\2a", b"\2b"]


def test_mapping_without_ids_of_its_columns_is_refused() -> None:
    mapping = mapping_of(LISTS)
    foreign = compile_avro(AvroSchema.of(json.dumps(NODE)), {}, mapping.ids, mapping.options, keep_raw=False)
    with pytest.raises(DescriptorError, match="ids given lack a column"):
        _ = foreign.programs


@pytest.mark.parametrize(("bits", "is_raw"), [("0100807f", True), ("0000a0ff", True), ("0000c07f", False)])
def test_signaling_nan_is_kept_raw(bits: str, is_raw: bool) -> None:
    value = bytes.fromhex(bits)
    rows = rows_of(mapping_of({"type": "record", "name": "R", "fields": [{"name": "a", "type": "float"}]}), [value])
    assert rows.field("__raw__").is_valid().to_pylist() == [is_raw], "a wider column would change its bits"


def test_records_without_bytes_take_linear_time() -> None:
    inner: Any = {"type": "record", "name": "Z0", "fields": []}
    for number in range(1, 40):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"Z{number - 1}"}]
        inner = {"type": "record", "name": f"Z{number}", "fields": fields}
    mapping = mapping_of(inner)
    started = time.process_time()
    rows_of(mapping, [b""] * 10)
    assert time.process_time() - started < 2.0


def test_lists_of_lists_are_shown_as_lists() -> None:
    nested = {"type": "array", "items": {"type": "array", "items": "string"}}
    mapping = mapping_of({"type": "record", "name": "R", "fields": [{"name": "a", "type": nested}]})
    values = pa.array([b"\2\4\2a\2b\0\0", b"\4\4\2a\2b\0\2\2a\0\0"], pa.binary())
    shown = mapping.shown(values, mapping.decode(values))
    texts = [json.loads(row["json"]) for row in shown.to_pylist()]
    assert texts == [{"a": [["a", "b"]]}, {"a": [["a", "b"], ["a"]]}]
