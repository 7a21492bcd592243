"""View column names stay unique."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, IcebergType, ListType, LongType, NestedField, StringType, StructType

from archiver.views.column_names import OWN, column_names
from archiver.views.leaves import leaves
from tests.support.catalog.memory import KAFKA

NAMES = ("a", "b", "A", "a_b", "b_a", "key", "val", "value", "headers", "tombstone", "kafka_offset", "key_error", "x.y")


@dataclass(frozen=True, slots=True)
class Column:
    field_id: int
    name: str
    below: tuple[Column, ...] | None = None
    is_list: bool = False


class Table:
    def __init__(self, choose: Any) -> None:
        self.choose = choose
        self.last_id = 100
        self.roots: dict[str, tuple[Column, ...]] = {"key": (), "val": ()}
        self.gone: list[tuple[str, Column]] = []
        self.history: list[Schema] = []

    def change(self) -> None:
        for _ in range(self.choose(st.integers(1, 4))):
            root = self.choose(st.sampled_from(("val", "val", "key")))
            self.roots[root] = self._changed(root, self.roots[root])
        self.history.append(self.schema())

    def _changed(self, root: str, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        kind = self.choose(st.sampled_from(("add", "add", "rename", "remove", "return", "inside", "inside")))
        if kind == "return" and self.gone and self.gone[-1][0] == root and self._is_free(self.gone[-1][1], columns):
            return (*columns, self.gone.pop()[1])
        if kind == "add" or not columns:
            return (*columns, self._new(columns))
        at = self.choose(st.integers(0, len(columns) - 1))
        before, chosen, after = columns[:at], columns[at], columns[at + 1 :]
        if kind == "remove":
            self.gone.append((root, chosen))
            return (*before, *after)
        renamed = replace(chosen, name=self.choose(st.sampled_from(NAMES)))
        if kind == "rename" and self._is_free(renamed, columns):
            return (*before, renamed, *after)
        if kind == "inside" and chosen.below is not None:
            return (*before, replace(chosen, below=self._changed("", chosen.below)), *after)
        return columns

    def _new(self, beside: tuple[Column, ...]) -> Column:
        self.last_id += 1
        number = self.last_id
        free = [name for name in NAMES if self._is_free(Column(number, name), beside)]
        name = self.choose(st.sampled_from(free)) if free else f"n{number}"
        kind = self.choose(st.sampled_from(("scalar", "struct", "list")))
        if kind == "scalar":
            return Column(number, name)
        return Column(number, name, (self._new(()),), is_list=kind == "list")

    @staticmethod
    def _is_free(wanted: Column, columns: tuple[Column, ...]) -> bool:
        return all(wanted.name != column.name for column in columns)

    def schema(self) -> Schema:
        key, val = (
            NestedField(number, root, StructType(*self._own(root, number), *map(_field, self.roots[root])))
            for number, root in enumerate(("key", "val"), start=1)
        )
        return Schema(key, val, NestedField(4, "kafka", KAFKA), schema_id=len(self.history))

    @staticmethod
    def _own(root: str, number: int) -> tuple[NestedField, ...]:
        return (
            NestedField(50 + number, "__raw__", BinaryType()),
            NestedField(60 + number, "__err__", StringType()),
            NestedField(70 + number, "__unrecognized__", BinaryType()),
        )


def _field(column: Column) -> NestedField:
    kind: IcebergType = LongType()
    if column.below is not None:
        kind = StructType(*map(_field, column.below))
        if column.is_list:
            kind = ListType(element_id=column.field_id + 100_000, element_type=kind)  # an empty struct is falsy
    return NestedField(column.field_id, column.name, kind)


@st.composite
def histories(draw: Any) -> list[Schema]:
    table = Table(draw)
    for _ in range(draw(st.integers(1, 6))):
        table.change()
    return table.history


def names_after(history: list[Schema], depth: int | None = None) -> dict[int, str]:
    return column_names([leaves(schema, depth) for schema in history])


@given(histories(), st.sampled_from((None, 0, 1, 2)))
def test_names_are_unique_ignoring_case(history: list[Schema], depth: int | None) -> None:
    names = names_after(history, depth)
    assert len({name.lower() for name in names.values()}) == len(names)
    assert set(names) == {leaf.field_id for schema in history for leaf in leaves(schema, depth)}


@given(histories())
def test_a_column_keeps_its_name_whatever_comes_after(history: list[Schema]) -> None:
    """So no name goes to another column: names are unique in the whole history."""
    full = names_after(history)
    for end in range(1, len(history)):
        assert names_after(history[:end]).items() <= full.items()


@given(histories(), st.integers(0, 6))
def test_given_names_survive_forgotten_schemas(history: list[Schema], cut: int) -> None:
    names = names_after(history)
    assert column_names([leaves(schema) for schema in history[cut:]], names) == names


@given(histories())
def test_the_archivers_own_names_are_never_a_fields(history: list[Schema]) -> None:
    names = names_after(history)
    own = {50, 51, 52, 61, 62, 71, 72, *range(1, 25)}
    assert not {name.lower() for number, name in names.items() if number not in own} & OWN
    assert names[11] == "kafka_offset"
    assert (names[51], names[52], names[61], names[62]) == ("key", "value", "key_error", "value_error")
    assert (names[71], names[72]) == ("key_unrecognized", "value_unrecognized")


def test_renamed_field_keeps_its_name_and_successor_does_not() -> None:
    table = Table(None)
    table.roots["val"] = (Column(101, "departure", (Column(102, "delay"), Column(103, "gate"))),)
    table.history.append(table.schema())
    table.roots["val"] = (Column(101, "start", (Column(102, "delay_minutes"), Column(104, "delay"))),)
    table.history.append(table.schema())
    names = names_after(table.history)
    assert names[102] == "departure_delay"
    assert names[103] == "departure_gate"
    assert names[104] == "start_delay"


def test_of_two_paths_with_one_name_the_shallower_gets_it() -> None:
    table = Table(None)
    table.roots["val"] = (Column(101, "a", (Column(102, "b"),)), Column(103, "a_b"), Column(104, "key"))
    table.roots["key"] = (Column(105, "error"), Column(106, "id"))
    table.history.append(table.schema())
    names = names_after(table.history)
    assert names[103] == "a_b"
    assert names[102] == "val_a_b"
    assert names[104] == "val_key"
    assert names[105] == "key_error_105"
    assert names[106] == "key_id"
