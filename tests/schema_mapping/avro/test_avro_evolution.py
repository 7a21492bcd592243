"""Changed Avro schemas."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schema_mapping import Assignment, LedgerState, assign, rebuild_ledger
from schema_mapping.avro.mapping import AvroMapping
from schema_mapping.avro.schema import AvroSchema
from schema_mapping.columns.arrow import field_id_of
from schema_mapping.row import row_mapping_from_text
from tests.support.schemas.strategies_avro import written

LONG = {"name": "n", "type": "long"}


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def versions(*writers: list[dict[str, Any]]) -> list[Assignment]:
    state, assigned = LedgerState(), []
    for schemas in writers:
        assignment = assign(state, value=AvroSchema.of(*map(json.dumps, schemas)))
        state = assignment.state
        assigned.append(assignment)
    rebuilt = rebuild_ledger([assignment.row for assignment in assigned])
    assert [entry.field_id for entry in rebuilt.entries] == [entry.field_id for entry in state.entries]
    return assigned


def ids(assignment: Assignment) -> dict[str, int]:
    return {column.name: field_id_of(column) for column in assignment.row.value.arrow_type}


def values_of(assignment: Assignment, *writings: tuple[int, dict[str, Any], Any]) -> list[dict[str, Any]]:
    mapping = assignment.row.value
    assert isinstance(mapping, AvroMapping)
    values = [written(schema, value) for _, schema, value in writings]
    which = np.array([writer for writer, _, _ in writings], np.int16)
    rows = mapping.decode(pa.array(values, pa.binary()), which=which)
    rows.validate(full=True)
    assert mapping.encode(rows).to_pylist() == values
    assert row_mapping_from_text(assignment.row.text).value.encode(rows).to_pylist() == values
    return rows.to_pylist()


def test_alias_keeps_the_column() -> None:
    old, new = record(field("old", "string"), LONG), record(LONG, field("new", "string", aliases=["old"]))
    first, second = versions([old], [new, old])
    assert ids(second)["new"] == ids(first)["old"]
    assert [(change.kind, change.after) for change in second.changes] == [("renamed", "new")]
    rows = values_of(second, (0, new, {"n": 1, "new": "a"}), (1, old, {"old": "b", "n": 2}))
    assert [(row["new"], row["n"], row["__raw__"], row["__form__"]) for row in rows] == [
        ("a", 1, None, None),
        ("b", 2, None, "writer_1"),
    ]


def test_alias_chain_keeps_the_column() -> None:
    one, two = record(field("a", "int")), record(field("b", "int", aliases=["a"]))
    three = record(field("c", "int", aliases=["b"]))
    first, second, third = versions([one], [two, one], [three, two, one])
    assert ids(third)["c"] == ids(second)["b"] == ids(first)["a"]
    rows = values_of(third, (0, three, {"c": 1}), (1, two, {"b": 2}), (2, one, {"a": 3}))
    assert [row["c"] for row in rows] == [1, 2, 3]


def test_name_of_a_renamed_field_may_come_again() -> None:
    one, two = record(field("a", "int")), record(field("b", "int", aliases=["a"]))
    three = record(field("b", "int", aliases=["a"]), field("a", "int"))
    first, second, third = versions([one], [two], [three])
    assert ids(third)["b"] == ids(second)["b"] == ids(first)["a"]
    assert ids(third)["a"] not in ids(second).values()
    values_of(third, (0, three, {"b": 1, "a": 2}))


def test_without_alias_a_renamed_field_is_another_column() -> None:
    first, second = versions([record(field("old", "string"))], [record(field("new", "string"))])
    assert ids(second)["new"] != ids(first)["old"]


@pytest.mark.parametrize(("narrow", "wide", "number"), [("int", "long", 5), ("float", "double", 0.5)])
def test_promotion_widens_the_column(narrow: str, wide: str, number: float) -> None:
    old, new = record(field("x", narrow)), record(field("x", wide))
    first, second = versions([old], [new, old])
    assert ids(second)["x"] == ids(first)["x"]
    rows = values_of(second, (1, old, {"x": number}), (0, new, {"x": number}))
    assert [(row["x"], row["__raw__"]) for row in rows] == [(number, None)] * 2


def test_nan_of_a_widened_float_keeps_its_bits() -> None:
    old, new = record(field("x", "float")), record(field("x", "double"))
    mapping = versions([old], [new, old])[1].row.value
    values = [struct.pack("<I", bits) for bits in (0x7F800001, 0x7FC00123, 0xFFC00000, 0x7F800000)]
    rows = mapping.decode(pa.array(values), which=np.ones(4, np.int16))
    assert mapping.encode(rows).to_pylist() == values
    assert [raw is None for raw in rows.field("__raw__").to_pylist()] == [False, False, False, True]


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [("int", "float", 5, 0.5), ("string", "bytes", "a", b"a"), ("bytes", "string", b"a", "a")],
)
def test_promotion_that_iceberg_lacks_is_another_column(before: str, after: str, old: Any, new: Any) -> None:
    writer, newer = record(field("x", before), LONG), record(field("x", after), LONG)
    first, second = versions([writer], [newer, writer])
    assert ids(second)["x"] != ids(first)["x"]
    rows = values_of(second, (1, writer, {"x": old, "n": 1}), (0, newer, {"x": new, "n": 2}))
    assert [(row["x"], row["n"], row["__raw__"] is None) for row in rows] == [(None, 1, False), (new, 2, True)]


def test_removed_field_of_an_old_writer_keeps_its_values() -> None:
    old, new = record(LONG, field("gone", "string")), record(LONG)
    first, second = versions([old], [new, old])
    assert ids(second)["gone"] == ids(first)["gone"]
    rows = values_of(second, (0, new, {"n": 1}), (1, old, {"n": 2, "gone": "x"}))
    assert [(row["gone"], row["__raw__"]) for row in rows] == [(None, None), ("x", None)]


def test_widened_union_takes_old_values() -> None:
    old = record(field("u", ["null", "string"]))
    new = record(field("u", ["null", "string", "long"]))
    _, second = versions([old], [new, old])
    rows = values_of(second, (0, new, {"u": ("long", 5)}), (1, old, {"u": "x"}), (1, old, {"u": None}))
    assert [row["u"] and {key: part for key, part in row["u"].items() if part} for row in rows] == [
        {"long": 5},
        {"string": "x"},
        None,
    ]
    assert [row["__raw__"] for row in rows] == [None] * 3


def test_narrowed_union_keeps_other_branches_raw() -> None:
    old, new = record(field("u", ["null", "string", "long"])), record(field("u", ["null", "string"]))
    _, second = versions([old], [new, old])
    rows = values_of(second, (1, old, {"u": ("string", "x")}), (1, old, {"u": ("long", 5)}), (1, old, {"u": None}))
    assert [(row["u"], row["__raw__"] is None) for row in rows] == [("x", True), (None, False), (None, True)]


def test_symbols_may_come_and_go() -> None:
    def enum(*symbols: str) -> dict[str, Any]:
        return record(field("e", {"type": "enum", "name": "E", "symbols": list(symbols)}))

    old, new = enum("A", "B"), enum("B", "C")
    _, second = versions([old], [new, old])
    rows = values_of(second, (0, new, {"e": "B"}), (1, old, {"e": "B"}), (1, old, {"e": "A"}), (0, new, {"e": "C"}))
    assert [(row["e"], row["__raw__"]) for row in rows] == [("B", None), ("B", None), ("A", None), ("C", None)]


def test_namespace_may_move() -> None:
    inner = {"type": "record", "name": "Inner", "fields": [LONG]}
    old, new = (record(field("x", ["null", "string", inner]), namespace=space) for space in ("a", "b"))
    first, second = versions([old], [new, old])
    rows = values_of(second, (0, new, {"x": ("b.Inner", {"n": 1})}), (1, old, {"x": ("a.Inner", {"n": 2})}))
    assert [row["x"]["Inner"]["n"] for row in rows] == [1, 2]
    assert ids(second)["x"] == ids(first)["x"]


def test_fields_may_be_reordered_and_nullable() -> None:
    old = record(LONG, field("s", "string"))
    new = record(field("s", ["string", "null"]), field("n", ["null", "long"]))
    first, second = versions([old], [new, old])
    assert ids(second) == ids(first)
    rows = values_of(second, (0, new, {"s": None, "n": 5}), (1, old, {"n": 6, "s": "x"}))
    assert [(row["n"], row["s"]) for row in rows] == [(5, None), (6, "x")]


def test_nested_records_and_lists_are_joined() -> None:
    def nested(*fields: dict[str, Any]) -> dict[str, Any]:
        inner = {"type": "record", "name": "Inner", "fields": list(fields)}
        return record(
            field("list", {"type": "array", "items": inner}), field("map", {"type": "map", "values": "Inner"})
        )

    old, new = nested(field("a", "int")), nested(field("b", "string"), field("aa", "long", aliases=["a"]))
    _, second = versions([old], [new, old])
    rows = values_of(
        second,
        (0, new, {"list": [{"b": "x", "aa": 1}], "map": {}}),
        (1, old, {"list": [{"a": 2}, {"a": 3}], "map": {"k": {"a": 4}}}),
    )
    assert [[item["aa"] for item in row["list"]] for row in rows] == [[1], [2, 3]]
    assert rows[1]["map"][0][1]["aa"] == 4
    assert [row["__raw__"] for row in rows] == [None, None]


def test_record_becomes_another_kind_of_value() -> None:
    old, new = record(LONG), '"string"'
    mapping = assign(LedgerState(), value=AvroSchema.of(new, json.dumps(old))).row.value
    rows = mapping.decode(pa.array([b"\2", b"\2a"]), which=np.array([1, 0], np.int16))
    assert mapping.encode(rows).to_pylist() == [b"\2", b"\2a"]
    assert rows.field("__raw__").to_pylist() == [b"\2", None]
    assert rows.field("value").to_pylist() == [None, "a"]


def test_same_schema_is_no_new_version() -> None:
    first, second = versions([record(LONG)], [record(dict(LONG, doc="a number"))])
    assert first.version == second.version


def test_declared_types_are_shown() -> None:
    kind = {"type": "array", "items": {"type": "enum", "name": "shop.E", "symbols": ["A"]}}
    mapping = versions([record(field("x", ["null", kind]))])[0].row.value
    declared = mapping.declared(("x",))
    assert (declared.name, declared.type, declared.is_enum) == ("x", "union<null, array<shop.E>>", True)
