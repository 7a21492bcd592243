"""Schemas inferred from samples."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.config.formats import AvroFormat, JsonFormat, RawFormat
from archiver.errors import ConfigError
from archiver.schemas.format_settings import InferredSchema
from archiver.schemas.formats import FORMATS
from archiver.schemas.json.inference import infer_json_schema
from schema_mapping import LedgerState, assign
from schema_mapping.json.schema import JsonSchema
from tests.support.schemas.strategies_json import ANYTHING, WRITERS


def inferred(*values: Any, base: JsonSchema | None = None) -> InferredSchema:
    written = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]
    return infer_json_schema([pa.array([*written, None], pa.binary())], title="t", base=base)


def schema_of(result: InferredSchema) -> dict[str, Any]:
    document = json.loads(result.text)
    assert document.pop("$schema") == "https://json-schema.org/draft/2020-12/schema"
    assert document.pop("title") == "t"
    return dict(document)


def members(**types: Any) -> dict[str, Any]:
    return {"type": "object", "properties": types}


INTEGER, NUMBER, TEXT = {"type": "integer"}, {"type": "number"}, {"type": "string"}


def test_types_of_members() -> None:
    result = inferred(
        {"id": 1, "price": 1.5, "name": "a", "is_paid": True, "at": {"x": 1}, "lines": [{"sku": "s"}, {"count": 2}]},
        {"id": 2, "price": 2, "name": None, "more": [[1], []]},
    )
    assert schema_of(result) == members(
        id=INTEGER,
        price=NUMBER,
        name={"type": ["string", "null"]},
        more={"type": "array", "items": {"type": "array", "items": INTEGER}},
        is_paid={"type": "boolean"},
        at=members(x=INTEGER),
        lines={"type": "array", "items": members(sku=TEXT, count=INTEGER)},
    )
    assert (result.values, result.raw, result.reasons, result.remarks) == (2, 0, (), ())


def test_new_members_follow_the_members_before_them() -> None:
    result = inferred({"a": 1, "d": 1}, {"a": 1, "b": 1, "c": 1, "d": 1}, {"first": 1, "a": 1, "last": 1})
    assert list(schema_of(result)["properties"]) == ["first", "a", "last", "b", "c", "d"]


def test_kinds_side_by_side() -> None:
    result = inferred({"m": 1, "n": []}, {"m": "x", "n": 1}, {"m": [True]})
    assert schema_of(result) == members(m={"type": ["integer", "string", "array"], "items": {"type": "boolean"}}, n={})
    assert result.remarks == (
        "m: a column for each type (1 integer, 1 string, 1 array)",
        "n: JSON text (1 integer, 1 array)",
    )


def test_members_without_a_type_have_no_column_yet() -> None:
    result = inferred({"a": 1, "none": None, "list": [], "deep": {"e": {}, "f": [None]}})
    assert schema_of(result) == members(a=INTEGER)
    assert result.raw == 0
    assert [remark.partition(":")[0] for remark in result.remarks] == ["none", "list", "deep"]
    assert "always null or empty; its values are in `__unrecognized__`" in result.remarks[0]


def test_names_that_are_data_make_a_map() -> None:
    choices = random.Random(1)
    values = [
        {"counts": {f"user-{choices.randrange(10**6)}": {"n": number}}, "labels": {"env": "x"}} for number in range(200)
    ]
    assert schema_of(inferred(*values)) == members(
        counts={"type": "object", "additionalProperties": members(n=INTEGER)}, labels=members(env=TEXT)
    )
    mixed = [{"counts": {f"user-{number}-{name}": name or "x" for name in range(6)}} for number in range(200)]
    result = inferred(*mixed)
    assert schema_of(result) == members(counts={})
    assert result.raw == 0


@pytest.mark.parametrize("text", ["1.50", "12345678901234567890123", "0.12345678901234567890", "-0", "1E400"])
def test_numbers_that_columns_would_change_are_text(text: str) -> None:
    odd = b'{"id":7,"price":%s,"kept":[%s,1]}' % (text.encode(), text.encode())
    result = inferred(*[odd] * 50, b'{"id":8}')
    assert schema_of(result)["properties"]["price"] == {}
    assert schema_of(result)["properties"]["kept"] == {"type": "array", "items": {}}
    assert result.raw == 0
    assert "price: JSON text, because a column of numbers wouldn't give back 50 of 50 numbers, such as" in " ".join(
        result.remarks
    )


def test_few_odd_numbers_stay_raw() -> None:
    result = inferred(*[{"price": 1.5}] * 499, b'{"price": 1.50}')
    assert schema_of(result) == members(price=NUMBER)
    assert (result.raw, result.reasons) == (1, ("1 columns can't restore the bytes",))


def test_values_that_are_not_json_are_counted() -> None:
    result = inferred({"a": 1}, b"no", b"\xff", b"[" * 5_000)
    assert schema_of(result) == members(a=INTEGER)
    assert (result.values, result.raw) == (4, 3)
    assert set(result.reasons) == {"2 bad_json", "1 too_deep"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((), "no schema can be inferred: the sample has no values"),
        ((b"x",), "none of the sampled values is JSON: Expecting value"),
        ((b"\0\0\0\0\7{}",), "the values begin like the envelope of a schema registry, which has their schemas"),
        ((b"null", b"{}", b"[]"), "no schema can be inferred: all values are null or empty"),
    ],
)
def test_samples_without_a_schema(values: tuple[bytes, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        inferred(*values)


def test_a_later_sample_extends_the_schema() -> None:
    first = json.loads(inferred({"id": 1, "user": {"name": "a"}, "gone": [1]}).text)
    first["properties"]["id"]["description"] = "The id."
    first["properties"]["small"] = {"type": "integer", "connect.type": "int16"}
    first["properties"]["open"] = {}
    base = JsonSchema.of(json.dumps(first))
    result = inferred({"new": True, "id": 2, "user": {"age": 3, "name": None}, "small": 5, "open": 1}, base=base)
    assert schema_of(result) == members(
        id={"type": "integer", "description": "The id."},
        user=members(name={"type": ["string", "null"]}, age=INTEGER),
        gone={"type": "array", "items": INTEGER},
        small={"type": "integer", "connect.type": "int32"},
        open={},
        new={"type": "boolean"},
    )
    wider = schema_of(inferred({"small": 2**40, "id": "x"}, base=base))["properties"]
    assert wider["small"] == INTEGER
    assert wider["id"] == {"type": ["integer", "string"], "description": "The id."}
    again = JsonSchema.of(result.text)
    ledger = assign(LedgerState(), value=base).state
    kinds = {str(change.kind) for change in assign(ledger, value=again).changes}
    assert kinds <= {"added", "promoted"}


def test_maps_and_objects_stay_what_they_are() -> None:
    labels = {"type": "object", "additionalProperties": TEXT}
    base = JsonSchema.of(json.dumps({"title": "t", **members(labels=labels, at=members(x=INTEGER))}))
    values = [{"labels": {"a": "b"}, "at": {f"k{number}": 1}} for number in range(200)]
    schema = schema_of(inferred(*values, base=base))
    assert schema["properties"]["labels"] == labels
    assert list(schema["properties"]["at"]["properties"])[:2] == ["x", "k0"]


@settings(max_examples=20)
@given(
    st.lists(st.dictionaries(st.sampled_from("abcde"), ANYTHING, max_size=4), min_size=1, max_size=12),
    st.sampled_from(WRITERS),
)
def test_equal_samples_have_equal_schemas(values: list[Any], write: Any) -> None:
    written = [write(value).encode() for value in values]
    try:
        result = inferred(*written)
    except ConfigError:
        return
    assert inferred(*written) == result
    schema = JsonSchema.of(result.text)
    mapping = assign(LedgerState(), value=schema).row.value
    rows = mapping.decode(pa.array(written))
    assert mapping.encode(rows).to_pylist() == written
    assert rows.field("__err__").null_count == len(written)
    assert rows.field("__raw__").null_count == len(written) - result.raw
    assert inferred(*written, base=schema).raw <= result.raw


def test_sections_whose_schemas_can_be_inferred() -> None:
    assert FORMATS.inference_of(None) is infer_json_schema
    assert FORMATS.inference_of(RawFormat()) is infer_json_schema
    file = JsonFormat.model_validate({"format": "json", "schema": "a.schema.json"})
    assert FORMATS.inference_of(file) is infer_json_schema
    with pytest.raises(ConfigError, match="the schema registry has the schemas"):
        FORMATS.inference_of(JsonFormat(format="json", wire_format="confluent"))
    with pytest.raises(ConfigError, match="schemas can't be inferred for avro"):
        FORMATS.inference_of(AvroFormat.model_validate({"format": "avro", "schema": "a.avsc"}))
