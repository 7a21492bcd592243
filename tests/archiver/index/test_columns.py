"""Indexed columns, and their changed history."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema

from archiver.config import TopicConfig
from archiver.config.index_section import IndexedValue
from archiver.errors import ConfigError
from archiver.index.columns import check_columns, resolve_columns
from schema_mapping import LedgerState, assign
from tests.support.archive.lake import schema_of
from tests.support.schemas.proto_text import compile_text

TEXT = """
enum Kind { NONE = 0; }
message Customer { string id = 1; }
message M {
  int64 id = 1; string name = 2; double price = 3; Customer customer = 4; repeated string tags = 5; Kind kind = 6;
}
"""
MADE = assign(LedgerState(), value=compile_text(TEXT))
SCHEMA: Schema = schema_of(MADE.row)


def resolved(*names: str) -> dict[str, str]:
    settings = [IndexedValue(column=name) for name in names]
    return {it.name: it.mapping for it in resolve_columns(settings, SCHEMA, MADE.state, "orders")}


def test_keys_headers_and_columns_are_indexed() -> None:
    assert len(resolved("key", "header:trace", "val.id", "val.customer.id")) == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("val.nam", "the table has no such column; there is val.name"),
        ("val.custmer.id", "there is val.customer.id"),
        ("val.price", "only texts, bytes and whole numbers .* double"),
        ("val.customer", "name one of its columns"),
        ("val.tags", "only texts, bytes and whole numbers"),
        ("val.tags.element", "outside of lists and maps"),
        ("val.kind", "it is an enum"),
        ("val.__raw__", "only texts"),
    ],
)
def test_other_columns_are_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        resolved(name)
    assert error.value.context["key"] == "topics.orders.index"


def test_a_former_column_makes_runs_stale() -> None:
    again = assign(MADE.state, value=compile_text(TEXT.replace("string name", "int64 name")))
    (column,) = resolve_columns([IndexedValue(column="val.name")], schema_of(again.row), again.state, "orders")
    assert column.mapping != resolved("val.name")["val.name"]
    (same,) = resolve_columns([IndexedValue(column="val.id")], schema_of(again.row), again.state, "orders")
    assert same.mapping == resolved("val.id")["val.id"]


def check(names: str, *schemas: Schema) -> None:
    settings = tuple(IndexedValue(column=name) for name in names.split())
    config = TopicConfig(name="orders", table="kafka.orders", index=settings)
    check_columns(config, schemas, MADE.state)


def test_columns_of_any_known_schema_may_be_named() -> None:
    later = schema_of(assign(MADE.state, value=compile_text(TEXT.replace("string name", "string title"))).row)
    check("val.title val.name key", later, SCHEMA)
    with pytest.raises(ConfigError, match=r"no such column; there is val\.title") as error:
        check("val.titel", later, SCHEMA)
    assert error.value.context["key"] == "topics.orders.index"
