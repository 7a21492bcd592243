"""Conditions on table columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from archiver.errors import ConfigError
from archiver.records.selection import Selection
from archiver.records.where import Answer, Bounds, Where
from archiver.records.where_syntax import AnyOf, ColumnIs, Constant, Not

BATCH = pa.RecordBatch.from_pydict({"offset": pa.array([0, 1, 2, 9], pa.int64())})


def column(name: str, kind: str, text: str, comparison: str = "=") -> ColumnIs:
    return ColumnIs(tuple(name.split(".")), Constant(kind, text), comparison)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("val.customer.id = 'it''s'", column("val.customer.id", "text", "it's")),
        ("VAL.Id == 0x00FF", column("val.Id", "bytes", "00ff")),
        ("key.id2 = -12", column("key.id2", "number", "-12")),
        ("val.price = -1.50e3", column("val.price", "number", "-1.50e3")),
        ("val.paid = TRUE", column("val.paid", "truth", "true")),
        ("val.at = 2026-01-31T00:00:00Z", column("val.at", "time", "2026-01-31T00:00:00Z")),
        ("val.a in (1, 'b')", AnyOf((column("val.a", "number", "1"), column("val.a", "text", "b")))),
        ("val.a <> 1", column("val.a", "number", "1", "!=")),
        ("val.a >= 1.5", column("val.a", "number", "1.5", ">=")),
        ("val.a starts with 'b'", column("val.a", "text", "b", "starts with")),
        ("val.a not contains 'b'", Not(column("val.a", "text", "b", "contains"))),
        ("val.a not in (1)", Not(AnyOf((column("val.a", "number", "1"),)))),
    ],
)
def test_conditions_on_columns(text: str, condition: object) -> None:
    assert Where.parse(text).condition == condition


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("value.id = 1", r"at character 1: columns of the value are below `val`: write val\.id"),
        ("val.id is null", "at character 8: expected a comparison such as = or >=, found `is`"),
        ("val.id not = 1", "at character 12: expected `in`, `contains`, `starts with` or `ends with`, found `=`"),
        ("val.id starts 'a'", "at character 8: expected a comparison such as = or >=, found `starts`"),
        ("val.id = yes", "at character 10: expected text in quotes, a number, true"),
        ("val.id = 0xf", "at character 10: expected two hexadecimal digits"),
        ("val = 1", r"at character 1: expected partition, .* or a column such as val\.customer\.id"),
        ("partition = 1.5", r"at character 13: expected a number, found `1\.5`"),
    ],
)
def test_what_is_no_condition_on_a_column(text: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        Where.parse(text)


def test_a_selection_has_conditions_on_columns_too() -> None:
    selection = Selection.parse(where="offset = 1 or not val.id = 1")
    assert selection.where is not None
    assert [asked.column for asked in selection.where.columns] == ["val.id"]


def test_columns_exclude_rows_that_no_other_part_restores() -> None:
    answers = {ONE: Answer(np.array([True, False, False]), np.array([False, False, True]))}
    assert Where.parse("val.id = 1 and key = 'a'").may_hold(3, answers).tolist() == [True, False, True]
    assert Where.parse("val.id = 1 or key = 'a'").may_hold(3, answers).tolist() == [True, True, True]
    assert Where.parse("not (val.id = 1 or key = 'a')").may_hold(3, answers).tolist() == [False, True, True]


ONE, TWO = column("val.id", "number", "1"), column("val.id", "number", "2")


@pytest.mark.parametrize(
    ("text", "certain", "possible"),
    [
        ("val.id = 1", [0], [0, 2]),
        ("not val.id = 1", [1, 9], [1, 2, 9]),
        ("not not val.id = 1", [0], [0, 2]),
        ("val.id = 1 and offset > 0", [], [2]),
        ("val.id = 1 and offset < 2", [0], [0]),
        ("val.id = 1 or offset = 2", [0, 2], [0, 2]),
        ("val.id in (1, 2)", [0, 1], [0, 1, 2]),
        ("offset = 9", [9], [9]),
    ],
)
def test_records_whose_columns_do_not_tell(text: str, certain: list[int], possible: list[int]) -> None:
    where = Where.parse(text)
    unknown = np.array([False, False, True, False])
    answers = {
        ONE: Answer(np.array([True, False, True, False]), unknown),
        TWO: Answer(np.array([False, True, False, False]), unknown),
    }
    offsets = BATCH.column("offset").to_numpy()
    assert offsets[where.rows(BATCH, answers)].tolist() == certain
    assert offsets[where.rows(BATCH, answers, unknown=True)].tolist() == possible


def test_each_column_is_asked_once_and_bounds_nothing() -> None:
    where = Where.parse("val.id = 1 and not (val.id in (2, 1) or offset = 3)")
    assert where.columns == (ONE, TWO)
    assert Where.parse("val.id = 1 or offset = 3").bounds(0) == Bounds()
    assert Where.parse("val.id = 1 and offset = 3").bounds(0) == Bounds(low_offset=3, high_offset=3)
