"""Rows with dictionaries."""

from __future__ import annotations

import random
import string
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import compile_mapping
from schema_mapping.columns.arrow import IN_DICTIONARY
from schema_mapping.errors import KernelError
from schema_mapping.protobuf import encode as encode_module
from schema_mapping.protobuf.kernel.encoder import encode_rows
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.dictionaries import in_dictionaries
from tests.support.schemas.proto_text import descriptor_of

FLAT = "message M { string s = 1; optional string o = 2; E e = 3; int32 n = 4; } enum E { Z = 0; A = 5; LESS = -3; }"
NESTED = """
message M { N one = 1; repeated N ns = 2; map<string, E> m = 3; repeated E es = 4; string s = 5; map<string, N> n = 6; }
message N { repeated string t = 1; E e = 2; optional string s = 3; }
enum E { Z = 0; A = 5; LESS = -3; }
"""
ROWS = 500


@pytest.fixture
def as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("rows were cast")

    monkeypatch.setattr(encode_module, "as_mapped", refused)


def texts(draw: random.Random) -> str:
    return "".join(draw.choices(string.ascii_letters + "\u20ac", k=draw.choice((0, 1, 5, 15, 16, 17, 31, 33, 700))))


def values_of(text: str, made: Any) -> tuple[MessageMapping, pa.BinaryArray]:
    descriptor = descriptor_of(text)
    draw, kind = random.Random(5), GetMessageClass(descriptor)
    values = [None if draw.random() < 0.05 else kind(**made(draw)).SerializeToString() for _ in range(ROWS)]
    return compile_mapping(descriptor), pa.array(values, pa.binary())


def flat(draw: random.Random) -> dict[str, Any]:
    result = {"s": texts(draw), "o": texts(draw), "e": draw.choice((0, 5, -3, 77)), "n": 1}
    return {name: value for name, value in result.items() if draw.random() < 0.7}


def nested(draw: random.Random) -> dict[str, Any]:
    def one() -> dict[str, Any]:
        result = {"t": [texts(draw) for _ in range(draw.randrange(3))], "e": draw.choice((0, 5, 9)), "s": texts(draw)}
        return {name: value for name, value in result.items() if draw.random() < 0.7}

    return {
        "one": one(),
        "ns": [one() for _ in range(draw.randrange(3))],
        "es": [draw.choice((0, 5, -3, 77)) for _ in range(draw.randrange(4))],
        "m": {texts(draw): 5} if draw.random() < 0.5 else {},
        "s": texts(draw),
        "n": {texts(draw): one()} if draw.random() < 0.5 else {},
    }


@pytest.mark.usefixtures("as_they_are")
@pytest.mark.parametrize(("text", "made"), [(FLAT, flat), (NESTED, nested)], ids=["flat", "nested"])
def test_every_byte_comes_back(text: str, made: Any) -> None:
    mapping, values = values_of(text, made)
    rows = mapping.decode(values)
    result = rows.cast(in_dictionaries(rows.type))
    assert mapping.encode(result).equals(values)
    for start, length in ((1, ROWS - 1), (13, 8), (100, 3), (ROWS - 9, 9), (7, 0)):
        assert mapping.encode(result[start : start + length]).equals(values[start : start + length])


def with_texts(mapping: MessageMapping, name: str, column: pa.Array) -> pa.StructArray:
    children = [column if field.name == name else pa.nulls(len(column), field.type) for field in mapping.arrow_type]
    kinds = [field.with_type(child.type) for field, child in zip(mapping.arrow_type, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=kinds)


def dictionary(places: list[int | None], *entries: str | None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(entries, pa.string()), safe=False)


@pytest.mark.usefixtures("as_they_are")
@pytest.mark.parametrize("count", [1, 30])
def test_text_that_is_no_number_matters_only_if_a_row_uses_it(count: int) -> None:
    mapping = compile_mapping(descriptor_of(FLAT))
    good = with_texts(mapping, "e", dictionary([1, None, 2] * count, "nothing", "A", "-7"))
    assert mapping.encode(good).to_pylist() == [b"\x18\x05", b"", b"\x18\xf9" + b"\xff" * 8 + b"\x01"] * count
    bad = with_texts(mapping, "e", dictionary([1, 1, 0] * count, "nothing", "A"))
    with pytest.raises(KernelError, match="neither a name") as caught:
        mapping.encode(bad)
    assert caught.value.context == {"row": 3 * count - 1, "field_number": 3}


@pytest.mark.usefixtures("as_they_are")
def test_a_slice_of_a_dictionary() -> None:
    mapping = compile_mapping(descriptor_of(FLAT))
    part = pa.array(["left", "a", "bb"]).slice(1)
    rows = with_texts(mapping, "s", pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int32()), part))
    assert mapping.encode(rows).to_pylist() == [b"\x0a\x02bb", b"\x0a\x01a"]


@pytest.mark.parametrize("places", [[0, 2], [0, -1], [0] * 20 + [1 << 30]])
def test_places_that_a_dictionary_lacks_are_refused(places: list[int | None]) -> None:
    mapping = compile_mapping(descriptor_of(FLAT))
    with pytest.raises(KernelError, match="don't have the mapping's type"):
        mapping.encode(with_texts(mapping, "s", dictionary(places, "a", "b")))


def test_dictionaries_unfit_for_the_kernel_are_decoded() -> None:
    mapping = compile_mapping(descriptor_of(FLAT))
    with_null = with_texts(mapping, "s", dictionary([0, 1, None], None, "b"))
    assert mapping.encode(with_null).to_pylist() == [b"", b"\x0a\x01b", b""]
    large = "x" * (1 << 20)
    with_large = with_texts(mapping, "s", dictionary([1, 0], "a", large))
    assert [len(value) for value in mapping.encode(with_large).to_pylist()] == [(1 << 20) + 4, 3]
    narrow = pa.array(["a", "b"]).cast(pa.dictionary(pa.int8(), pa.string()))
    assert mapping.encode(with_texts(mapping, "s", narrow)).to_pylist() == [b"\x0a\x01a", b"\x0a\x01b"]


def test_rare_long_text_takes_no_memory_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    guesses: list[int] = []

    def noted(tables: Any, capsule: Any, *, guess: int, wide: bool) -> Any:
        guesses.append(guess)
        return encode_rows(tables, capsule, guess=guess, wide=wide)

    monkeypatch.setattr(encode_module, "encode_rows", noted)
    mapping = compile_mapping(descriptor_of(FLAT))
    rows = with_texts(mapping, "s", dictionary([0] * 16_000 + [1], "ok", "x" * 1_000_000))
    assert len(mapping.encode(rows)[16_000].as_py()) == 1_000_004
    assert max(guesses) < 20 << 20


@pytest.mark.usefixtures("as_they_are")
def test_rows_of_files_with_other_names_of_map_entries() -> None:
    mapping = compile_mapping(descriptor_of("message M { map<string, string> m = 1; }"))
    values = pa.array([b"\x0a\x06\x0a\x01a\x12\x01b", b""], pa.binary())
    file = pa.BufferOutputStream()
    pq.write_table(pa.table({"val": mapping.decode(values)}), file)
    texts = ["val.m.key_value.key", "val.m.key_value.value"]
    (batch,) = pq.ParquetFile(pa.BufferReader(file.getvalue()), read_dictionary=texts).iter_batches()
    assert batch.column("val").type.field("m").type.item_type == IN_DICTIONARY
    assert mapping.encode(batch.column("val")).equals(values)


@pytest.mark.usefixtures("as_they_are")
def test_a_dictionary_without_entries() -> None:
    mapping = compile_mapping(descriptor_of(FLAT))
    rows = with_texts(mapping, "o", pa.nulls(30, IN_DICTIONARY))
    assert mapping.encode(rows).to_pylist() == [b""] * 30
