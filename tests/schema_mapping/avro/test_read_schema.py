"""Schemas as texts: names, references, logical types, errors."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from schema_mapping.avro.normal_text import normal_text
from schema_mapping.avro.read_schema import read_types
from schema_mapping.avro.schema import AvroSchema, complete_text, writer_fingerprint
from schema_mapping.avro.types import NULL, ArrayOf, FixedBytes, PrimitiveType, RecordName, UnionOf
from schema_mapping.errors import DescriptorError


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> str:
    return json.dumps({"type": "record", "name": name, "fields": fields, **more})


def test_names_take_the_namespace_around_them() -> None:
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "again", "type": ["null", "R"]}]}
    another = {"type": "record", "name": "Other", "namespace": "b", "fields": [{"name": "in", "type": "a.Inner"}]}
    types = read_types(record({"name": "x", "type": inner}, {"name": "y", "type": another}, namespace="a"))
    assert types.root == RecordName("a.R")
    assert list(types.records) == ["a.R", "a.Inner", "b.Other"]
    assert types.records["a.Inner"].fields[0].type == UnionOf((NULL, RecordName("a.R")))


def test_references_come_in_any_order() -> None:
    inner = record({"name": "n", "type": "a.Leaf"}, name="a.Inner")
    leaf = json.dumps({"type": "fixed", "name": "a.Leaf", "size": 2})
    types = read_types(record({"name": "x", "type": {"type": "array", "items": "a.Inner"}}), (inner, leaf))
    assert types.records["R"].fields[0].type == ArrayOf(RecordName("a.Inner"))
    assert types.records["a.Inner"].fields[0].type == FixedBytes("a.Leaf", 2)


def test_complete_text_needs_no_references() -> None:
    schema = AvroSchema.of(record({"name": "x", "type": "Leaf"}), references=(record(name="Leaf"),))
    assert read_types(schema.writers[0]).records.keys() == {"R", "Leaf"}


@pytest.mark.parametrize(
    "logical",
    [
        {"type": "int", "logicalType": "timestamp-millis"},
        {"type": "bytes", "logicalType": "decimal"},
        {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3},
        {"type": "string", "logicalType": "no-such-type"},
        {"type": {"type": "string", "avro.java.string": "String"}},
    ],
    ids=str,
)
def test_logical_type_that_does_not_fit_is_ignored(logical: dict[str, Any]) -> None:
    kind = logical["type"]["type"] if isinstance(logical["type"], dict) else logical["type"]
    assert read_types(json.dumps(logical)).root == PrimitiveType(kind)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "isn't JSON"),
        ('"no.such.Type"', "uses a type that neither it nor its references define"),
        ("5", "neither a name nor an object"),
        ('{"type": "array"}', "lacks `items`"),
        ('{"type": "record", "fields": []}', "has no name"),
        ('{"type": "record", "name": "R", "fields": 5}', "isn't a list"),
        (record({"name": "x", "type": "int"}, {"name": "x", "type": "int"}), "two fields of one name"),
        (record({"type": "int"}), "has no name"),
        (record({"name": "x"}), "has no type"),
        (record({"name": "x", "type": record(name="R")}), "uses a type"),
        ('{"type": "enum", "name": "E", "symbols": ["A", "A"]}', "each once"),
        ('{"type": "enum", "name": "E", "symbols": []}', "needs symbols"),
        ('{"type": "fixed", "name": "F", "size": 0}', "at least one byte"),
        ('["string", "string"]', "branches of different types"),
        ("[]", "branches of different types"),
        ('[["string"]]', "branches of different types"),
        ('{"type": "record", "name": "string", "fields": []}', "the name of a primitive"),
        ('["null", ' * 5_000 + '"int"' + "]" * 5_000, "nested too deeply"),
        ('{"type": "array", "items": ' * 41 + '"int"' + "}" * 41, "too many arrays and maps"),
        ('{"type": "string", "size": ' + "9" * 5_000 + "}", "isn't JSON"),
        (r'{"type": "enum", "name": "E", "symbols": ["\ud800"]}', "isn't JSON"),
    ],
    ids=range(21),
)
def test_text_that_is_no_schema_is_refused(text: str, message: str) -> None:
    with pytest.raises(DescriptorError, match=message):
        read_types(text)


def test_type_defined_twice_is_refused() -> None:
    inner = {"type": "fixed", "name": "F", "size": 1}
    with pytest.raises(DescriptorError, match="defines a type twice"):
        read_types(record({"name": "x", "type": inner}, {"name": "y", "type": inner}))


def test_normal_text_is_read_back() -> None:
    fields = (
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "f", "type": {"type": "fixed", "name": "n.F", "size": 16, "logicalType": "uuid", "aliases": ["G"]}},
        {"name": "m", "type": {"type": "map", "values": ["null", "n.F", "R"]}, "aliases": ["old"]},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}, "doc": "when", "default": 0},
    )
    types = read_types(record(*fields, aliases=["Q"], namespace="", doc="a record"))
    text = normal_text(types)
    again = read_types(text)
    assert normal_text(again) == text
    assert again.records["R"].aliases == ("Q",)
    assert "doc" not in text
    assert "default" not in text


def test_fingerprint_leaves_out_docs_and_defaults_only() -> None:
    plain = writer_fingerprint(record({"name": "x", "type": "int"}))
    same = record({"name": "x", "type": "int", "doc": "a number", "default": 3})
    assert writer_fingerprint(same) == plain
    for changed in (
        {"name": "y", "type": "int"},
        {"name": "x", "type": {"type": "int", "logicalType": "date"}},
        {"name": "x", "type": "int", "aliases": ["y"]},
    ):
        assert writer_fingerprint(record(changed)) != plain


def test_writers_that_mean_the_same_are_one() -> None:
    first = record({"name": "x", "type": "int", "doc": "new"})
    schema = AvroSchema.of(first, record({"name": "x", "type": "int"}), record({"name": "x", "type": "long"}))
    assert schema.writers[0] == first
    assert len(schema.writers) == 2
    assert schema.messages[0] == "R"
    assert schema.messages[1].startswith("R@")


def test_long_chain_of_references_is_refused() -> None:
    names = [f"R{number}" for number in range(400)]
    chain = [record({"name": "x", "type": after}, name=name) for name, after in pairwise(names)]
    with pytest.raises(DescriptorError, match="nested too deeply"):
        complete_text(chain[0], (*chain[1:], record(name=names[-1])))


@pytest.mark.parametrize(("depth", "is_read"), [(49, True), (60, False)])
def test_depth_of_types_is_limited(depth: int, is_read: bool) -> None:
    text = record({"name": "x", "type": "int"}, name="R0")
    for number in range(1, depth):
        text = record({"name": "x", "type": ["null", json.loads(text)]}, name=f"R{number}")
    if is_read:
        assert AvroSchema.of(text, record({"name": "y", "type": "int"}, name=f"R{depth - 1}")).messages
    else:
        with pytest.raises(DescriptorError, match="nested too deeply"):
            read_types(text)
