"""Encoding by example, from memory and Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import compile_mapping
from schema_mapping.errors import KernelError
from schema_mapping.protobuf.encode import encode
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.proto_text import descriptor_of

TEXT = """
message M {
  int32 i32 = 1; sint32 s32 = 2; uint32 u32 = 3; int64 i64 = 4; sint64 s64 = 5; fixed32 f32 = 6; sfixed64 sf64 = 7;
  double d = 8; float f = 9; bool b = 10; string s = 11; bytes y = 12; E e = 13; repeated E es = 14;
  repeated double ds = 15; repeated bool bs = 16; repeated sint64 ss = 17 [packed = false]; map<bool, E> m = 18;
  map<string, N> n = 19; repeated N ns = 20; optional int32 o = 2000; N one = 3000;
}
message N { repeated string t = 1; N next = 2; }
enum E { option allow_alias = true; E_ZERO = 0; E_ONE = 1; E_UNO = 1; E_LESS = -3; }
"""


def written() -> tuple[MessageMapping, pa.BinaryArray]:
    descriptor = descriptor_of(TEXT)
    kind = GetMessageClass(descriptor)
    full = kind(
        i32=-1, s32=-(1 << 31), u32=(1 << 32) - 1, i64=-(1 << 63), s64=-(1 << 63), f32=1 << 31, sf64=-5, d=-0.0, f=1.5,
        b=True, s="\u20ac", y=b"\xff\0", e=1, es=[0, -3, 77, 1], ds=[0.0, -1.5], bs=[True, False], ss=[-1, 1 << 62],
        m={True: 0, False: -3}, n={"": {}, "k": {"t": ["", "x"]}}, ns=[{}, {"t": ["y"]}], o=0,
        one={"next": {"t": ["z"]}},
    )  # fmt: skip
    values = [
        full.SerializeToString(),
        None,
        b"",
        b"\x08\x81\x00",
        b"\x08",
        full.SerializeToString() + b"\xa2\x7d\x01q",
    ]
    return compile_mapping(descriptor), pa.array(values, pa.binary())


def test_every_type_comes_back() -> None:
    mapping, values = written()
    rows = mapping.decode(values)
    assert rows.field("__raw__").null_count == 4
    assert mapping.encode(rows).equals(values)


def without(kind: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(without(kind.value_type, path[1:]))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, without(kind.item_type, path[1:]))
    kept = [field for field in kind if field.name != path[0] or len(path) > 1]
    return pa.struct(
        [entry.with_type(without(entry.type, path[1:])) if entry.name == path[0] else entry for entry in kept]
    )


@pytest.mark.parametrize(
    "path",
    [("s",), ("one", "t"), ("one", "__unrecognized__"), ("ns", "element", "t"), ("n", "value", "next")],
    ids=".".join,
)
def test_rows_lacking_a_nested_column_are_refused(path: tuple[str, ...]) -> None:
    mapping, values = written()
    rows = pa.array(mapping.decode(values).to_pylist(), without(mapping.arrow_type, path))
    with pytest.raises(KernelError, match="don't have the mapping's type") as caught:
        mapping.encode(rows)
    assert caught.value.context["column"] == ".".join(path)


@pytest.mark.parametrize(("start", "length"), [(0, 3), (1, 2), (2, 4), (5, 1), (6, 0)])
def test_slices(start: int, length: int) -> None:
    mapping, values = written()
    values = pa.concat_arrays([values] * 20)
    rows = mapping.decode(values)
    for shift in range(3):
        part = slice(start + 6 * shift, start + 6 * shift + length)
        assert mapping.encode(rows[part]).equals(values[part])


def test_taken_and_concatenated_rows() -> None:
    mapping, values = written()
    rows = mapping.decode(values)
    places = pa.array([5, 0, 1, 0])
    assert mapping.encode(rows.take(places)).equals(values.take(places))
    assert mapping.encode(pa.concat_arrays([rows[1:], rows])).equals(pa.concat_arrays([values[1:], values]))


def test_rows_from_parquet(tmp_path: Path) -> None:
    mapping, values = written()
    rows = mapping.decode(values)
    pq.write_table(pa.table({"val": rows}), tmp_path / "rows.parquet")
    (read,) = pq.read_table(tmp_path / "rows.parquet").column("val").chunks
    assert mapping.encode(read).equals(values)


def test_text_in_dictionaries_and_large_arrays() -> None:
    mapping = compile_mapping(descriptor_of("message M { string s = 1; bytes y = 2; }"))
    values = pa.array([b"\x0a\x01a\x12\x01b", b"", None])
    rows = mapping.decode(values)
    columns = [rows.field("s").cast(pa.large_string()), rows.field("y").cast(pa.large_binary())]
    columns += [rows.field(i) for i in range(2, 7)]
    wide = pa.StructArray.from_arrays(columns, names=[field.name for field in rows.type], mask=rows.is_null())
    assert mapping.encode(wide).equals(values)


def test_no_rows() -> None:
    mapping, _ = written()
    assert mapping.encode(mapping.decode(pa.array([], pa.binary()))).to_pylist() == []


def test_names_of_enums() -> None:
    mapping = compile_mapping(
        descriptor_of("message M { repeated E e = 1; } enum E { Z = 0; A = 5; LONG_NAME_HERE = 6; }")
    )
    for texts, value in (
        (["A", "Z", "LONG_NAME_HERE"], b"\x0a\x03\x05\x00\x06"),
        (["5", "-1"], b"\x0a\x0b\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    ):
        assert encode(rows_with(mapping, texts), mapping.program).to_pylist() == [value]
    for text in ("B", "", "-", "9999999999", "1x", "LONG_NAME_HER", "4294967296"):
        with pytest.raises(KernelError, match="neither a name") as caught:
            encode(rows_with(mapping, ["A", text]), mapping.program)
        assert caught.value.context == {"row": 0, "field_number": 1}


def rows_with(mapping: MessageMapping, texts: list[str]) -> pa.StructArray:
    return pa.array([{"e": texts}], mapping.arrow_type)


def test_other_columns_are_refused() -> None:
    mapping, _ = written()
    with pytest.raises(KernelError, match="type"):
        mapping.encode(pa.array([{"i32": 1}]))
    with pytest.raises(KernelError, match="type"):
        encode(pa.array([1]), mapping.program)
