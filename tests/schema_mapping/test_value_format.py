"""Value formats by name."""

from __future__ import annotations

import pickle
import uuid
from datetime import date, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.types import DateType, DecimalType, FixedType, IntegerType, LongType, StringType, TimeType, UUIDType

from archiver.schemas.decode import decode_enveloped
from archiver.schemas.registry.envelope import BAD_ENVELOPE, UNKNOWN_SCHEMA_ID, RegistryEnvelopes
from schema_mapping import Assignment, LedgerState, ValueMapping, assign, register
from schema_mapping.columns.evolution import ChangeKind
from schema_mapping.columns.ledger import ColumnState
from schema_mapping.columns.types import ColumnType, DecimalColumn
from schema_mapping.errors import DescriptorError
from schema_mapping.formats import format_called, mapping_from_json
from schema_mapping.ledger_rebuild import rebuild_ledger
from schema_mapping.outline import outline
from schema_mapping.row import row_mapping_from_json, row_mapping_from_text
from tests.support.schemas.fixed_width import FORMAT, FixedField, FixedSchema, FixedWidthFormat, IdAlone, record
from tests.support.schemas.proto_text import fields

TRADE = FixedSchema.of(id="int", day="date", at="time", price="decimal(9, 2)", tag="fixed[3]", trader="uuid")
WIDER = FixedSchema.of(
    id="int", day="date", at="time", price="decimal(12, 2)", tag="fixed[3]", trader="uuid", lot="int"
)
TRADER = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
GOOD = record(TRADE, -7, 19_700, 3_600_000_001, -123, b"abc", TRADER.bytes)


def assigned(state: LedgerState, schema: Any) -> Assignment:
    return assign(state, value=schema)


def trades() -> ValueMapping:
    return assigned(LedgerState(), TRADE).row.value


def test_a_format_is_looked_up_by_name() -> None:
    assert format_called(FORMAT) == FixedWidthFormat()
    with pytest.raises(DescriptorError, match=r"no value format is called 'thrift'.*fixed_width.*protobuf.*raw"):
        mapping_from_json({"format": "thrift"})


def test_a_name_belongs_to_one_format() -> None:
    register(FixedWidthFormat())
    with pytest.raises(ValueError, match="another value format is called 'raw'"):
        register(FixedWidthFormat("raw"))


def test_a_mapping_that_names_no_format_is_protobuf() -> None:
    mapping = assigned(LedgerState(), fields("int32 a = 1;")).row.value
    data = mapping.to_json()
    assert data.pop("format") == "protobuf"
    assert mapping_from_json(data) == mapping


def test_columns_have_the_types_of_the_schema() -> None:
    assignment = assigned(LedgerState(), TRADE)
    value = assignment.iceberg_schema.find_type("val")
    assert [(field.name, field.field_type) for field in value.fields[:6]] == [
        ("id", IntegerType()),
        ("day", DateType()),
        ("at", TimeType()),
        ("price", DecimalType(9, 2)),
        ("tag", FixedType(3)),
        ("trader", UUIDType()),
    ]
    assert [entry.path for entry in assignment.state.entries if entry.root == "val"][:2] == [("id",), ("day",)]
    assert assignment.row.value.iceberg_type == value


def test_values_are_seen_in_their_columns_and_come_back() -> None:
    mapping = trades()
    rows = mapping.decode(pa.array([GOOD, None, GOOD[:-1], b""]))
    first = rows[0].as_py()
    assert [first[name] for name in ("id", "day", "at", "price", "tag", "trader")] == [
        -7, date(2023, 12, 9), time(1, 0, 0, 1), Decimal("-1.23"), b"abc", TRADER,
    ]  # fmt: skip
    assert first["__raw__"] is first["__err__"] is None
    assert rows[1].as_py() is None
    assert [(row["__err__"], row["__raw__"]) for row in rows[2:].to_pylist()] == [
        ("wrong_length@0", GOOD[:-1]),
        ("wrong_length@0", b""),
    ]
    assert mapping.encode(rows).to_pylist() == [GOOD, None, GOOD[:-1], b""]
    assert mapping.encode(rows.slice(2)).to_pylist() == [GOOD[:-1], b""]


@settings(deadline=None, derandomize=True)
@given(st.lists(st.none() | st.binary(min_size=43, max_size=43) | st.binary(max_size=60)))
def test_any_bytes_come_back(values: list[bytes | None]) -> None:
    mapping = trades()
    assert mapping.encode(mapping.decode(pa.array(values, pa.binary()))).to_pylist() == values


def test_a_row_mapping_travels_and_is_kept_as_text() -> None:
    row = assigned(LedgerState(), TRADE).row
    assert pickle.loads(pickle.dumps(row)) == row == row_mapping_from_text(row.text)
    assert row.value_schema == TRADE


def test_a_field_is_added_and_a_decimal_widened() -> None:
    first = assigned(LedgerState(), TRADE)
    second = assigned(first.state, WIDER)
    assert [(change.kind, change.column, change.before, change.after) for change in second.changes] == [
        (ChangeKind.ADDED, "val.lot", None, "int"),
        (ChangeKind.PROMOTED, "val.price", "decimal(9, 2)", "decimal(12, 2)"),
    ]
    before, after = first.iceberg_schema.find_field("val.price"), second.iceberg_schema.find_field("val.price")
    assert before.field_id == after.field_id
    assert after.field_type == DecimalType(12, 2)
    assert assigned(second.state, TRADE).version == 1, "a fingerprint seen before changes nothing"


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("decimal(9, 2)", "decimal(9, 3)", None),
        ("decimal(12, 2)", "decimal(9, 2)", None),
        ("int", "long", LongType()),
        ("date", "time", None),
        ("fixed[4]", "fixed[5]", None),
        ("fixed[16]", "uuid", None),
    ],
)
def test_only_what_iceberg_widens_keeps_its_column(before: str, after: str, kind: Any) -> None:
    first = assigned(LedgerState(), FixedSchema.of(x=before))
    second = assigned(first.state, FixedSchema.of(x=after))
    kinds = {change.kind for change in second.changes}
    old = first.iceberg_schema.find_field("val.x").field_id
    if kind is None:
        assert kinds == {ChangeKind.REPLACED, ChangeKind.RENAMED}
        assert second.iceberg_schema.find_field(old).name == f"x_deleted_{old}"
    else:
        assert kinds == {ChangeKind.PROMOTED}
        assert second.iceberg_schema.find_field(old).field_type == kind


def test_names_that_differ_in_case_alone_get_ids() -> None:
    assignment = assigned(LedgerState(), FixedSchema.of(Id="int", id="int", __raw__="int"))
    live = {entry.path[-1]: entry.name for entry in assignment.state.entries if entry.root == "val"}
    ids = {entry.path[-1]: entry.field_id for entry in assignment.state.entries if entry.root == "val"}
    assert live["Id"] == "Id"
    assert live["id"] == f"id_{ids['id']}"
    assert live["__raw__"] == f"__raw___{ids['__raw__']}"


def test_a_format_may_follow_another() -> None:
    first = assigned(LedgerState(), fields("int32 id = 1; string day = 2;"))
    second = assigned(first.state, TRADE)
    entries = {entry.name: entry for entry in second.state.entries if entry.root == "val"}
    assert entries["id"].path == ("id",)
    old = [entry for entry in second.state.entries if entry.path in {(1,), (2,)}]
    assert [entry.state for entry in old] == [ColumnState.DELETED] * 2
    third = assign(second.state, value=fields("int32 id = 1; string day = 2; bytes more = 3;"))
    live = {entry.name: entry.path for entry in third.state.entries if entry.state is ColumnState.LIVE}
    assert (live["id"], live["day"], live["more"]) == ((1,), (2,), (3,))
    assert third.iceberg_schema.find_field("val.day").field_type == StringType()


def test_the_ledger_is_learned_again_from_mappings() -> None:
    first = assigned(LedgerState(), TRADE)
    second = assigned(first.state, WIDER)
    again = rebuild_ledger([first.row, second.row])
    assert again == second.state


def test_people_see_fields_without_numbers() -> None:
    commented = FixedSchema(fields=(FixedField(name="id", type="int", comment="who  sold"), *TRADE.fields[1:]))
    outlined = outline(assigned(LedgerState(), commented).state)
    first, second = outlined.roots[1].columns[:2]
    assert (first.number, first.source_name, first.protobuf, first.doc) == (None, "id", "int (4 bytes)", "who sold")
    assert (second.type, second.protobuf) == ("date", "date (4 bytes)")
    assert outlined.roots[1].message == "record"


def test_another_format_shares_the_schema_id_of_envelopes() -> None:
    row = assigned(LedgerState(), TRADE).row
    head = b"\0" + (7).to_bytes(4, "big")
    values = [head + GOOD, b"\0\0\0\0\x08" + GOOD, GOOD, head, None, head + b"short"]
    seen: set[int] = set()
    rows = decode_enveloped(row.value, pa.array(values), RegistryEnvelopes(choice=IdAlone(known=(7,))), seen=seen)
    assert [value and value["__err__"] for value in rows.to_pylist()] == [
        None, UNKNOWN_SCHEMA_ID, BAD_ENVELOPE, "wrong_length@0", None, "wrong_length@0",
    ]  # fmt: skip
    assert rows[0]["__prefix__"].as_py() == head
    assert rows[0]["id"].as_py() == -7
    assert row.value.encode(rows).to_pylist() == values
    assert seen == {7}


def test_ids_of_another_schema_are_refused() -> None:
    row = assigned(LedgerState(), TRADE).row
    data = row.to_json()
    data["value"]["columns"] = [column for column in data["value"]["columns"] if column[0] != [-5]]
    with pytest.raises(DescriptorError, match="the ids given lack a column"):
        _ = row_mapping_from_json(data).value.arrow_type


def test_types_have_limits() -> None:
    assert ColumnType("date") is ColumnType.DATE
    for bad in ((0, 0), (39, 0), (5, 6)):
        with pytest.raises(DescriptorError, match="a decimal has 1 to 38 digits"):
            DecimalColumn(*bad)
