"""Bloom filters as table properties, by field id."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyiceberg.types import LongType, NestedField

from catalog.iceberg.append import prepare
from catalog.iceberg.bloom_filters import bloom_filters, changed_properties, filter_properties
from catalog.iceberg.schema_change import SchemaChange
from catalog.model import new_id
from tests.support.catalog.memory import ID, NOTE, MemoryCatalog, change, schema, span

ENABLED = "write.parquet.bloom-filter-enabled.column."
RATE = "write.parquet.bloom-filter-fpp.column."
NUMBER = NestedField(ID.field_id, "number", LongType())


def test_what_is_written_is_read_back_by_field_id() -> None:
    properties = filter_properties(schema(ID, NOTE), {101: 0.01, 102: 0.001, 999: 0.5})
    assert properties == {
        f"{ENABLED}val.id": "true",
        f"{RATE}val.id": "0.01",
        f"{ENABLED}val.note": "true",
        f"{RATE}val.note": "0.001",
    }
    assert bloom_filters(schema(ID, NOTE), properties) == {101: 0.01, 102: 0.001}
    assert bloom_filters(schema(NOTE), properties) == {102: 0.001}


def test_what_others_wrote_is_understood() -> None:
    properties = {f"{ENABLED}val.id": "TRUE", f"{ENABLED}val.note": "false", f"{ENABLED}gone": "true"}
    assert bloom_filters(schema(ID, NOTE), properties) == {101: 0.01}
    for odd in ("much", "0", "1", "nan"):
        assert bloom_filters(schema(ID), {**properties, f"{RATE}val.id": odd}) == {101: 0.01}


def test_properties_follow_renamed_and_dropped_columns() -> None:
    properties = filter_properties(schema(ID, NOTE), {101: 0.02, 102: 0.02}) | {"archiver.topic": "orders"}
    done = changed_properties(properties, before=schema(ID, NOTE), after=schema(NUMBER), wanted=None)
    assert done.updates == {f"{ENABLED}val.number": "true", f"{RATE}val.number": "0.02"}
    assert done.removals == tuple(
        sorted(f"{prefix}val.{name}" for prefix in (ENABLED, RATE) for name in ("id", "note"))
    )


def test_names_that_columns_exchange_are_exchanged() -> None:
    renamed = NestedField(NOTE.field_id, "id", NOTE.field_type)
    properties = {f"{ENABLED}val.id": "true", f"{RATE}val.id": "0.02"}
    done = changed_properties(properties, before=schema(ID, NOTE), after=schema(NUMBER, renamed), wanted=None)
    assert done.removals == (f"{ENABLED}val.id", f"{RATE}val.id")
    assert set(done.updates) == {f"{ENABLED}val.number", f"{RATE}val.number"}


def test_a_list_says_it_all_and_none_leaves_everything() -> None:
    properties = {f"{ENABLED}val.id": "true", f"{ENABLED}val.gone": "true"}
    same = schema(ID, NOTE)
    assert not changed_properties(properties, before=same, after=same, wanted=None).removals
    done = changed_properties(properties, before=same, after=same, wanted={102: 0.01})
    assert done.updates == {f"{ENABLED}val.note": "true", f"{RATE}val.note": "0.01"}
    assert done.removals == (f"{ENABLED}val.gone", f"{ENABLED}val.id")
    again = {key: value for key, value in {**properties, **done.updates}.items() if key not in done.removals}
    settled = changed_properties(again, before=same, after=same, wanted={102: 0.01})
    assert (settled.updates, settled.removals) == ({}, ())


def committed(catalog: MemoryCatalog, wanted: SchemaChange, start: int) -> Mapping[str, str]:
    attempt = prepare(catalog.load(), [span(0, start, start + 5)], change=wanted, commit_id=new_id())
    catalog.apply(attempt)
    return {key: value for key, value in catalog.metadata.properties.items() if "bloom" in key}


def test_commits_add_rename_and_remove_bloom_filters(tmp_path: Path) -> None:
    catalog = MemoryCatalog(tmp_path)
    assert committed(catalog, change(ID), 0) == {}
    asked = SchemaChange(schema=schema(ID), version=1, owned_ids=frozenset(), bloom_filters={101: 0.01})
    assert committed(catalog, asked, 5) == {f"{ENABLED}val.id": "true", f"{RATE}val.id": "0.01"}
    assert committed(catalog, change(NUMBER, version=2), 10) == {
        f"{ENABLED}val.number": "true",
        f"{RATE}val.number": "0.01",
    }
    none = SchemaChange(schema=schema(NUMBER), version=2, owned_ids=frozenset(), bloom_filters={})
    assert committed(catalog, none, 15) == {}
