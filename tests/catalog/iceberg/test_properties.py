from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from pyiceberg.types import ListType, LongType, NestedField, StringType, StructType

from catalog.errors import NewerFormat, NotOurTable, TopicRecreated
from catalog.iceberg.properties import (
    MEASURED_SCALARS,
    check_owner,
    first_properties,
    metrics_properties,
    stale_metrics,
)
from tests.support.catalog.memory import ID, NOTE, TOPIC, schema

COLUMN = "write.metadata.metrics.column."


def measured(properties: dict[str, str], mode: str) -> list[str]:
    return [key.removeprefix(COLUMN) for key, value in properties.items() if key.startswith(COLUMN) and value == mode]


def test_shallow_scalars_are_measured_first_lists_never():
    nested = NestedField(110, "nested", StructType(NestedField(111, "inner", StringType())))
    repeated = NestedField(112, "tags", ListType(113, StringType()))
    properties = metrics_properties(schema(nested, repeated, ID))
    assert properties["write.metadata.metrics.default"] == "none"
    assert measured(properties, "truncate(16)") == ["key.__raw__", "val.id", "val.nested.inner"]
    assert measured(properties, "full") == [
        f"kafka.{name}" for name in ("partition", "offset", "event_timestamp", "ingest_timestamp", "batch_start")
    ]


def test_only_so_many_scalars_are_measured():
    wide = [NestedField(200 + number, f"f{number}", LongType()) for number in range(100)]
    columns = measured(metrics_properties(schema(*wide)), "truncate(16)")
    assert len(columns) == MEASURED_SCALARS
    assert columns[:2] == ["key.__raw__", "val.f0"]


def test_measured_columns_stay_measured_and_modes_of_others_stay():
    wide = [NestedField(200 + number, f"f{number}", LongType()) for number in range(100)]
    current = {f"{COLUMN}val.f99": "counts"}
    properties = metrics_properties(schema(*wide), current)
    assert properties[f"{COLUMN}val.f99"] == "counts"
    assert sum(key.startswith((f"{COLUMN}val.", f"{COLUMN}key.")) for key in properties) == 64


def test_metrics_of_columns_that_are_gone_are_stale():
    current = metrics_properties(schema(ID, NOTE))
    assert stale_metrics(schema(ID), current) == [f"{COLUMN}val.note"]


def test_a_table_is_its_topics():
    properties = first_properties(TOPIC, schema(ID), ledger_version=3)
    check_owner(TOPIC, properties)
    check_owner(replace(TOPIC, topic_id=None), properties)
    assert properties["archiver.ledger-version"] == "3"
    assert properties["archiver.last-field-id"] == "101"


@pytest.mark.parametrize(
    ("changed", "error", "named"),
    [
        ({"archiver.format-version": None}, NotOurTable, "was not made by the archiver"),
        ({"archiver.topic": None}, NotOurTable, "was not made by the archiver"),
        ({"archiver.topic": "payments"}, NotOurTable, "payments"),
        ({"archiver.cluster-id": "elsewhere"}, NotOurTable, "elsewhere"),
        ({"archiver.format-version": "2"}, NewerFormat, "upgrade"),
        ({"archiver.format-version": "x"}, NewerFormat, "upgrade"),
        ({"archiver.topic-id": str(UUID(int=9))}, TopicRecreated, "deleted and created again"),
    ],
)
def test_a_table_that_is_not_ours_is_refused(changed: dict[str, str | None], error: type[Exception], named: str):
    properties = first_properties(TOPIC, schema(ID), ledger_version=1) | changed
    with pytest.raises(error, match=named):
        check_owner(TOPIC, {key: value for key, value in properties.items() if value is not None})
