"""Foreign columns are projected by field id."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.archive.projection import compile_projection, shared_projection
from archiver.errors import ReplayError
from schema_mapping.columns.arrow import IN_DICTIONARY


def field(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


LINE = pa.struct([field("sku", pa.string(), 20), field("count", pa.int64(), 21)])
KEY = pa.field("key", pa.string(), nullable=False, metadata={"PARQUET:field_id": "14"})
WRITTEN = pa.struct(
    [
        field("id", pa.int64(), 10),
        field("lines", pa.list_(field("element", LINE, 12)), 11),
        field("notes", pa.map_(KEY, field("value", LINE, 15)), 13),
    ]
)
OTHER_LINE = pa.struct([field("many", pa.int32(), 21), field("added", pa.bool_(), 99), field("sku", pa.string(), 20)])
FOUND = pa.struct(
    [
        field("Notes", pa.map_(KEY, field("value", OTHER_LINE, 15)), 13),
        field("number", pa.int32(), 10),
        field("Lines", pa.large_list(field("element", OTHER_LINE, 12)), 11),
    ]
)
"""What another engine may make of it: other order, names, widths and kinds of list, and a column more."""

SKUS, COUNTS = st.none() | st.text(max_size=3), st.none() | st.integers(-9, 9)
LINES = st.none() | st.tuples(SKUS, COUNTS)
ORDERS = st.none() | st.tuples(
    COUNTS,
    st.none() | st.lists(LINES, max_size=3),
    st.none() | st.lists(st.tuples(st.text(max_size=2), LINES), max_size=3),
)


def written(order: Any) -> Any:
    def line(one: Any) -> Any:
        return one and {"sku": one[0], "count": one[1]}

    if order is None:
        return None
    number, lines, notes = order
    return {
        "id": number,
        "lines": None if lines is None else [line(value) for value in lines],
        "notes": None if notes is None else [(key, line(value)) for key, value in notes],
    }


def found(order: Any) -> Any:
    def line(one: Any) -> Any:
        return one and {"many": one[1], "added": True, "sku": one[0]}

    if order is None:
        return None
    number, lines, notes = order
    return {
        "Notes": None if notes is None else [(key, line(value)) for key, value in notes],
        "number": number,
        "Lines": None if lines is None else [line(value) for value in lines],
    }


@given(st.lists(ORDERS, max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_rows_survive_columns_changed_by_another_engine(orders: list[Any], start: int, rows: int) -> None:
    projection = compile_projection(FOUND, WRITTEN, "val")
    column = pa.array([found(order) for order in orders], FOUND).slice(start, rows)
    projected = projection(column)
    projected.validate(full=True)
    assert projected.type == WRITTEN
    assert projected.to_pylist() == [written(order) for order in orders[start : start + rows]]
    assert projection.missing == ()


def test_columns_as_they_were_written_are_not_copied() -> None:
    column = pa.array([written((1, [("a", 2)], [("k", None)]))], WRITTEN)
    assert compile_projection(WRITTEN, WRITTEN, "val")(column) is column


def test_columns_that_are_not_there_are_null_and_named() -> None:
    short = pa.struct([field("lines", pa.list_(field("element", pa.struct([LINE.field("sku")]), 12)), 11)])
    projection = compile_projection(short, WRITTEN, "val")
    column = pa.array([{"lines": [{"sku": "a"}]}, None], short)
    assert projection(column).to_pylist() == [
        {"id": None, "lines": [{"sku": "a", "count": None}], "notes": None},
        None,
    ]
    assert projection.missing == ("val.id", "val.lines.element.count", "val.notes")


def test_names_say_nothing() -> None:
    same_name = pa.struct([field("id", pa.int64(), 77)])
    projection = compile_projection(same_name, pa.struct([field("id", pa.int64(), 10)]), "val")
    assert projection(pa.array([{"id": 5}], same_name)).to_pylist() == [{"id": None}]
    assert projection.missing == ("val.id",)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.string(), LINE),
        (LINE, pa.string()),
        (pa.int64(), pa.list_(pa.int64())),
        (pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64())),
    ],
)
def test_a_column_of_another_kind_is_an_error_that_names_it(source: pa.DataType, target: pa.DataType) -> None:
    outer, inner = (pa.struct([field("x", value, 30)]) for value in (source, target))
    with pytest.raises(ReplayError, match="type its rows were written with") as error:
        compile_projection(outer, inner, "val")
    assert error.value.context["column"] == "val.x"


def test_a_projection_is_compiled_once_for_equal_types() -> None:
    same = pa.struct(list(FOUND))
    first = shared_projection(FOUND, WRITTEN, "val")
    assert shared_projection(same, WRITTEN, "val") is first
    assert shared_projection(same, WRITTEN, "key") is not first
    assert shared_projection(same, WRITTEN, "val", nulls=frozenset((10,))) is not first


def test_types_differing_in_field_ids_project_separately() -> None:
    ours, swapped = (pa.struct([field("a", pa.int64(), a), field("b", pa.int64(), b)]) for a, b in ((1, 2), (2, 1)))
    assert ours == swapped  # to Arrow
    column = pa.array([{"a": 5, "b": 6}], ours)
    assert shared_projection(ours, ours, "val")(column).to_pylist() == [{"a": 5, "b": 6}]
    renamed = pa.StructArray.from_arrays([column.field(0), column.field(1)], fields=list(swapped))
    assert shared_projection(swapped, ours, "val")(renamed).to_pylist() == [{"a": 6, "b": 5}]
    assert shared_projection(ours, swapped, "val")(column).to_pylist() == [{"a": 6, "b": 5}]


def test_texts_stay_in_dictionaries_only_where_they_are_asked_to() -> None:
    source, target = (pa.struct([field("a", kind, 1)]) for kind in (IN_DICTIONARY, pa.string()))
    column = pa.array([{"a": "x"}], target).cast(source)
    assert shared_projection(source, target, "val")(column).type == target
    assert shared_projection(source, target, "val", in_dictionaries=True)(column).type == source


def test_an_error_of_a_projection_is_raised_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ReplayError, match="type its rows were written with"):
            shared_projection(pa.struct([field("x", LINE, 30)]), pa.struct([field("x", pa.int64(), 30)]), "val")
