"""The paths of `bloom_filters`."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType, StructType

from archiver.config.model import TopicConfig
from archiver.errors import ConfigError
from archiver.schemas import bloom_columns
from schema_mapping.field_ids import Assignment, LedgerState, assign
from tests.support.schemas.proto_text import compile_text

FIELDS = """
    string id = 1; double price = 2; bool paid = 3; Customer customer = 4; repeated string tags = 5;
    map<string, string> more = 6; repeated Customer others = 7; int32 seat = 9; int64 wide = 10;
"""


def assigned(fields: str = FIELDS, state: LedgerState | None = None, customer: str = "string id = 1;") -> Assignment:
    text = f'syntax = "proto3"; package t; message Customer {{ {customer} }} message Event {{ {fields} }}'
    return assign(state or LedgerState(), value=compile_text(text, "t.Event"))


def topic(*paths: str, **more: float) -> TopicConfig:
    return TopicConfig.model_validate({"name": "orders", "table": "kafka.orders", "bloom_filters": paths, **more})


def id_of(assignment: Assignment, path: str) -> int:
    return assignment.iceberg_schema.find_field(path).field_id


def test_nothing_configured_leaves_it_to_the_table() -> None:
    config = TopicConfig(name="orders", table="kafka.orders")
    assert bloom_columns(config, assigned(), None) is None
    assert bloom_columns(topic(), assigned(), None) == {}


def test_paths_become_field_ids() -> None:
    made = assigned()
    columns = bloom_columns(topic("val.customer.id", "key.__raw__", bloom_filter_fpp=0.05), made, None)
    assert columns == {id_of(made, "val.customer.id"): 0.05, id_of(made, "key.__raw__"): 0.05}


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("val.customer.ids", r"no such column; there is val\.customer\.id"),
        ("nowhere", r"no such column \["),
        ("val.customer", "columns of its own"),
        ("val", "columns of its own"),
        ("val.paid", "only two values"),
        ("val.price", "equal numbers with different bytes"),
        ("val.seat", "may be widened to 64 bits"),
        ("val.tags.element", "inside a list or map"),
        ("val.more.value", "inside a list or map"),
        ("val.others.element.id", "inside a list or map"),
        ("headers.element.key", "inside a list or map"),
    ],
)
def test_paths_of_no_use_are_refused(path: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        bloom_columns(topic("val.id", path), assigned(), None)
    assert refused.value.context["key"] == "topics.orders.bloom_filters"
    assert refused.match(problem)


def test_renamed_column_keeps_old_names_until_reused() -> None:
    first = assigned()
    second = assigned(FIELDS.replace("string id = 1", "string number = 1"), first.state)
    assert id_of(second, "val.number") == id_of(first, "val.id")
    assert bloom_columns(topic("val.id"), second, None) == {id_of(first, "val.id"): 0.01}
    third = assigned(FIELDS.replace("string id = 1", "string number = 1; string id = 8"), second.state)
    assert id_of(third, "val.id") != id_of(first, "val.id")
    assert bloom_columns(topic("val.id"), third, None) == {id_of(third, "val.id"): 0.01}


def test_column_renamed_by_others_has_the_tables_name() -> None:
    made = assigned()
    number = id_of(made, "val.id")
    table = Schema(NestedField(2, "val", StructType(NestedField(number, "order_id", StringType()))))
    assert bloom_columns(topic("val.order_id"), made, table) == {number: 0.01}
    assert bloom_columns(topic("val.id"), made, table) == {number: 0.01}
    with pytest.raises(ConfigError):
        bloom_columns(topic("val.order_id"), made, None)
