"""Columns of two schema versions."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from archiver.errors import UpkeepError
from archiver.storage.row_columns import field_id
from archiver.upkeep.wide_schema import wide_schema
from schema_mapping.columns.arrow import arrow_field


def val(*fields: pa.Field) -> pa.Schema:
    return pa.schema([arrow_field("val", pa.struct(list(fields)), 2)])


def columns(schema: pa.Schema) -> dict[int | None, tuple[str, str]]:
    return {field_id(field): (field.name, str(field.type)) for field in schema.field("val").type}


def test_every_column_of_both_is_there_by_id() -> None:
    mapping = val(arrow_field("b", pa.string(), 11), arrow_field("c", pa.bool_(), 12))
    file = val(arrow_field("a", pa.int32(), 10), arrow_field("b", pa.string(), 11))
    assert columns(wide_schema(mapping, file, {})) == {
        11: ("b", "string"),
        12: ("c", "bool"),
        10: ("a", "int32"),
    }


def test_the_wider_type_holds_both() -> None:
    narrow, wide = val(arrow_field("a", pa.int32(), 10)), val(arrow_field("a", pa.int64(), 10))
    assert columns(wide_schema(narrow, wide, {})) == columns(wide_schema(wide, narrow, {})) == {10: ("a", "int64")}


@pytest.mark.parametrize("in_file", [pa.list_, pa.large_list])
def test_fields_below_both_kinds_of_lists_stay(in_file: Callable[[pa.Field], pa.DataType]) -> None:
    newest, older = arrow_field("a", pa.int32(), 11), arrow_field("b", pa.string(), 12)

    def listed(make: Callable[[pa.Field], pa.DataType], *fields: pa.Field) -> pa.Schema:
        return val(arrow_field("many", make(arrow_field("element", pa.struct(list(fields)), 13)), 10))

    schema = wide_schema(listed(pa.list_, newest), listed(in_file, newest, older), {})
    assert columns(schema)[10][1] == "list<element: struct<a: int32, b: string>>"


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32(), 2), pa.list_view(pa.int32()), pa.int32(), pa.struct([])], ids=str
)
def test_another_structure_is_refused(kind: pa.DataType) -> None:
    mapping = val(arrow_field("many", pa.list_(arrow_field("element", pa.int32(), 13)), 10))
    with pytest.raises(UpkeepError, match="another structure"):
        wide_schema(mapping, val(arrow_field("many", kind, 10)), {})


def test_former_column_yields_to_the_live_one_of_its_name() -> None:
    mapping, file = val(arrow_field("a", pa.string(), 20)), val(arrow_field("A", pa.int32(), 10))
    assert columns(wide_schema(mapping, file, {})) == {20: ("a", "string"), 10: ("A_10", "int32")}
    assert columns(wide_schema(mapping, file, {10: "a_deleted_10"}))[10] == ("a_deleted_10", "int32")


def test_lists_and_maps_grow_inside() -> None:
    def around(*fields: pa.Field) -> pa.Schema:
        inner = pa.struct(list(fields))
        return val(
            arrow_field("many", pa.list_(arrow_field("element", inner, 31, nullable=False)), 30),
            arrow_field(
                "named",
                pa.map_(arrow_field("key", pa.string(), 41, nullable=False), arrow_field("value", inner, 42)),
                40,
            ),
        )

    merged = wide_schema(around(arrow_field("b", pa.string(), 50)), around(arrow_field("a", pa.int32(), 51)), {})
    many, named = merged.field("val").type.field("many").type, merged.field("val").type.field("named").type
    assert [field.name for field in many.value_type] == [field.name for field in named.item_type] == ["b", "a"]
    assert (field_id(many.value_field), field_id(named.item_field)) == (31, 42)
