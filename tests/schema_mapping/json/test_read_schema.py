"""JSON Schemas of all drafts as types."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema_mapping.errors import DescriptorError
from schema_mapping.json.read_schema import read_document, read_type
from schema_mapping.json.types import from_data, to_data
from tests.support.schemas.strategies_json import json_mapping


def types(schema: Any, **references: Any) -> Any:
    data = to_data(read_type(schema, references))
    assert to_data(from_data(json.loads(json.dumps(data)))) == data
    return data


def obj(**members: Any) -> Any:
    return {"type": "object", "properties": members}


INTEGER, TEXT, NUMBER = {"type": "integer"}, {"type": "string"}, {"type": "number"}
NODE = {"$ref": "#/definitions/node"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "boolean"}, "boolean"),
        (INTEGER, "integer"),
        ({"type": "integer", "connect.type": "int16"}, "int"),
        ({"type": "integer", "connect.type": "int64"}, "integer"),
        (NUMBER, "number"),
        ({"type": ["integer", "number"]}, "number"),
        ({"type": "string", "format": "date-time"}, "string"),
        ({"pattern": "^a"}, "string"),
        ({"minimum": 3}, "number"),
        ({"enum": ["a", "b", None]}, "string"),
        ({"enum": [1, "b"]}, {"choice": ["integer", "string"]}),
        ({"const": 1.5}, "number"),
        ({"const": None}, "json"),
        ({"type": ["string", "null"]}, "string"),
        ({"type": "null"}, "json"),
        ({}, "json"),
        (True, "json"),
        (False, "json"),
        ({"type": "array"}, "json"),
        ({"type": "array", "items": INTEGER}, {"array": "integer"}),
        ({"items": {}}, {"array": "json"}),
        ({"type": "array", "items": [INTEGER, TEXT]}, "json"),
        ({"type": "array", "prefixItems": [INTEGER], "items": TEXT}, "json"),
        ({"type": "object"}, "json"),
        ({"type": "object", "properties": {}}, "json"),
        (obj(a=INTEGER, b={}), {"object": [["a", "integer"], ["b", "json"]]}),
        ({"properties": {"a": TEXT}}, {"object": [["a", "string"]]}),
        (obj(a=False, b=TEXT), {"object": [["b", "string"]]}),
        ({"type": "object", "additionalProperties": INTEGER}, {"map": "integer"}),
        ({"type": "object", "additionalProperties": True}, "json"),
        ({"type": "object", "patternProperties": {"^x": TEXT}}, {"map": "string"}),
        ({"type": "object", "patternProperties": {"^x": TEXT, "^y": TEXT}}, "json"),
        ({"type": "object", "patternProperties": {"^x": TEXT}, "additionalProperties": NUMBER}, "json"),
        ({"oneOf": [{"type": "null"}, TEXT]}, "string"),
        ({"anyOf": [INTEGER, TEXT, {"type": "null"}]}, {"choice": ["integer", "string"]}),
        ({"oneOf": [INTEGER, NUMBER]}, "number"),
        ({"oneOf": [obj(a=INTEGER), obj(b=TEXT)]}, {"object": [["a", "integer"], ["b", "string"]]}),
        ({"oneOf": [obj(a=INTEGER), obj(a=TEXT)]}, "json"),
        ({"oneOf": [obj(a=INTEGER), {"type": "object", "additionalProperties": TEXT}]}, "json"),
        ({"oneOf": [{"type": "array", "items": TEXT}, TEXT]}, {"choice": [{"array": "string"}, "string"]}),
        ({"allOf": [obj(a=INTEGER), obj(b=TEXT)]}, {"object": [["a", "integer"], ["b", "string"]]}),
        ({**obj(b=TEXT), "allOf": [obj(a=INTEGER)]}, {"object": [["a", "integer"], ["b", "string"]]}),
        ({"allOf": [NODE], "definitions": {"node": obj(a=TEXT)}}, {"object": [["a", "string"]]}),
        ({**NODE, "definitions": {"node": TEXT}}, "string"),
        ({"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": INTEGER}}, "integer"),
        ({"$ref": "#here", "$defs": {"x": {"$anchor": "here", **TEXT}}}, "string"),
        ({"$ref": "#here", "definitions": {"x": {"id": "#here", **TEXT}}}, "string"),
        ({"$ref": "http://x/y", "$defs": {"x": {"$id": "http://x/y", **TEXT}}}, "string"),
        ({"if": obj(a=TEXT), "then": obj(b=TEXT)}, "json"),
    ],
    ids=json.dumps,
)
def test_types_of_schema(schema: Any, expected: Any) -> None:
    assert types(schema) == expected


def test_recursion_is_json_text() -> None:
    schema = {**NODE, "definitions": {"node": obj(id=INTEGER, next=NODE, more={"type": "array", "items": NODE})}}
    assert types(schema) == {"object": [["id", "integer"], ["next", "json"], ["more", {"array": "json"}]]}
    assert types({"$ref": "#"}) == "json"


def test_references_to_other_documents() -> None:
    schema = obj(a={"$ref": "a.json"}, b={"$ref": "https://x.org/b.json#/definitions/b"})
    documents = {"a.json": {"$ref": "b.json#/definitions/b"}, "b.json": {"definitions": {"b": TEXT}}}
    assert types(schema, **documents) == {"object": [["a", "string"], ["b", "string"]]}


@pytest.mark.parametrize(
    "reference", ["#/definitions/none", "none.json", "#none", "#/type/x", "a.json#/x"], ids=lambda name: name
)
def test_reference_that_leads_nowhere_is_named(reference: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        types({**obj(a={"$ref": reference})}, **{"a.json": {}})
    assert caught.value.context["reference"] == reference


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "[" * 5_000, '"x"'], ids=lambda text: text[:5])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(DescriptorError, match="isn't"):
        read_document(text, "order.json")


KEYWORDS = st.sampled_from(
    (
        "$defs",
        "$id",
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "connect.type",
        "const",
        "enum",
        "items",
        "oneOf",
        "patternProperties",
        "prefixItems",
        "properties",
        "title",
        "type",
    )
)
ODD_SCHEMAS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["object", "array", "string", "#", "#/$defs"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(KEYWORDS, ODD_SCHEMAS, max_size=5))
def test_any_json_is_read_or_refused(schema: Any) -> None:
    try:
        mapping = json_mapping(schema)
    except DescriptorError:
        return
    values = [b'{"type":{"items":[1,null]},"title":"x"}', b"[[1]]", b"1.5", b'"x"', b"null"]
    assert mapping.encode(mapping.decode(pa.array(values))).to_pylist() == values


def test_schemas_that_grow_are_bounded() -> None:
    deep: Any = {}
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    assert json.dumps(types(deep)).count("array") < 100
    wide = {f"d{n}": obj(**{f"m{k}": {"$ref": f"#/definitions/d{n + 1}"} for k in range(10)}) for n in range(40)}
    doubling = {"allOf": [{"$ref": "#"}, {"$ref": "#"}], "properties": {"a": TEXT}}
    assert types(doubling) == {"object": [["a", "string"]]}
    schema = {"$ref": "#/definitions/d0", "definitions": {**wide, "d40": TEXT}}
    mapping = json_mapping(schema)
    assert len(mapping.ids.columns) < 10_000


def test_names_become_columns() -> None:
    schema = obj(**{"a-b": TEXT, "a b": TEXT, "\u00e9": TEXT, "": TEXT, "__raw__": TEXT, "A-B": TEXT, "x" * 300: TEXT})
    names = [field.name for field in json_mapping(schema).arrow_type]
    assert len({name.lower() for name in names}) == len(names)
    value = b'{"a-b":"1","a b":"2","\xc3\xa9":"3","":"4","__raw__":"5","A-B":"6"}'
    mapping = json_mapping(schema)
    rows = mapping.decode(pa.array([value]))
    assert rows.field("__raw__").to_pylist() == [None]
    assert mapping.encode(rows).to_pylist() == [value]


def test_non_ascii_and_lone_surrogates_in_names() -> None:
    assert types(json.loads('{"type":"object","properties":{"\\ud800":{"type":"string"},"a":{}}}')) == {
        "object": [["a", "json"]]
    }
