"""The tables of docs/engines.md are of the last `make interop RECORD=1`."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, ListType, LongType, NestedField, StringType, StructType, TimestamptzType

from tests.support.archive.engine_findings import ENGINES, PAGE, TABLES, kept, page
from tests.support.archive.type_cases import Case, level

KAFKA = StructType(
    NestedField(11, "partition", IntegerType()),
    NestedField(12, "offset", LongType()),
    NestedField(13, "event_timestamp", TimestamptzType()),
)
VAL = StructType(
    NestedField(21, "n", IntegerType()),
    NestedField(22, "tags", ListType(23, StringType(), element_required=False)),
    NestedField(24, "below", StructType(NestedField(25, "text", StringType()))),
)
SCHEMA = Schema(NestedField(1, "kafka", KAFKA), NestedField(2, "val", VAL))
CASE = Case(title="all", topic="plain", pick=lambda row: row["val"])
ROWS: list[dict[str, Any]] = [
    {
        "kafka": {"partition": 0, "offset": offset, "event_timestamp": offset},
        "val": {
            "n": offset,
            "tags": [["a", ""], [], None][offset],
            "below": [{"text": "x"}, {"text": None}, None][offset],
        },
    }
    for offset in range(3)
]


def test_the_page_shows_what_was_found() -> None:
    """After a change of either: `make interop RECORD=1`."""
    assert page(PAGE.read_text(encoding="utf-8"), kept()) == PAGE.read_text(encoding="utf-8")


def test_every_engine_was_asked_for_everything() -> None:
    for table, cases in TABLES.items():
        assert list(kept()[table]) == [case.title for case in cases]
        assert all(set(row) == set(ENGINES) for row in kept()[table].values())


def changed(**values: Any) -> list[dict[str, Any]]:
    rows = deepcopy(ROWS)
    rows[2]["val"].update(values)
    return rows


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (ROWS, "right"),
        (ROWS[::-1], "right"),
        (changed(tags=[]), "nulls"),
        (changed(below={"text": None}), "nulls"),
        (changed(below={"text": ""}), "wrong"),
        (changed(tags=["b"]), "wrong"),
        (changed(n=None), "wrong"),
        (ROWS[:2], "wrong"),
        ([*ROWS, ROWS[0]], "wrong"),
    ],
)
def test_the_judge_sees_what_is_wrong(found: list[dict[str, Any]], expected: str) -> None:
    assert level(found, ROWS, CASE, SCHEMA) == expected
