"""Cases for every engine: columns, schema changes, single fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyiceberg.schema import Schema

from tests.support.archive.canonical_rows import canonical_rows

Topic = Literal["plain", "native", "plain, changed", "native, changed"]
Level = Literal["right", "nulls", "wrong", "fails"]
"""`nulls`: right, but for nulls of structs, lists and maps; `fails`: the engine gives an error."""

Row = Mapping[str, Any]
Pick = Callable[[Row], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    title: str
    topic: Topic
    column: str = "val"
    """The column of the table that has to be read."""
    pick: Pick
    """What of a row is compared."""


def _values(title: str, topic: Topic, *names: str) -> Case:
    def pick(row: Row) -> Any:
        value = row["val"]
        decoded = value is not None and value["__err__"] is None and _is_set(value)
        return {name: value[name] for name in names} if decoded else None

    return Case(title=title, topic=topic, pick=pick)


def _is_set(value: Row) -> bool:
    # Engines without nulls of structs show tombstones as values of nulls: another case.
    return value["a_int32"] is not None


def _undecoded(value: Row | None) -> Row | None:
    return value if value is not None and value["__err__"] is not None else None


def _absence(value: Row | None) -> str:
    if value is None:
        return "null"
    return "there" if _is_set(value) or value["__err__"] is not None else "a value of nulls"


def _of(*kinds: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_{kind}" for prefix in ("a", "maybe", "many") for kind in kinds)


_WRAPPERS = ("bool_value", "string_value", "bytes_value", "uint64_value", "double_value")
TYPES: Sequence[Case] = (
    _values("`double`, `float`: limits, NaN, -0.0, infinities", "plain", *_of("double", "float")),
    _values(
        "signed integers of 32 and 64 bits", "plain", *_of("int32", "sint32", "sfixed32", "int64", "sint64", "sfixed64")
    ),
    _values(
        "`uint32`, `fixed32`, `uint64`, `fixed64` as `int`, `long`",
        "plain",
        *_of("uint32", "fixed32", "uint64", "fixed64"),
    ),
    _values("`uint64`, `fixed64` as `decimal(20,0)`", "native", *_of("uint64", "fixed64")),
    _values("`bool`, `string`, `bytes`", "plain", *_of("bool", "string", "bytes")),
    _values("enums, unknown numbers too", "plain", *_of("colour"), "colours_by_string"),
    _values("maps of scalars", "plain", "longs_by_string", "doubles_by_int32", "strings_by_bool", "bytes_by_uint64"),
    _values("maps with `decimal` keys", "native", "bytes_by_uint64"),
    _values("structs in structs", "plain", "nested"),
    _values("lists of structs", "plain", "items"),
    _values("structs in maps", "plain", "items_by_name"),
    _values("empty messages", "plain", "nothing", "nothings", "chosen_nothing"),
    _values("recursive messages, cut", "plain", "tree"),
    _values("a `oneof`", "plain", "chosen_text", "chosen_number"),
    _values("unknown fields", "plain", "__unrecognized__"),
    _values("well-known types as structs", "plain", "at", "took", *_WRAPPERS, "attributes", "any", "list"),
    _values("`Timestamp`, years 1 to 9999, in lists and maps too", "native", "at", "times", "times_by_name"),
    _values("`Duration`", "native", "took"),
    _values("wrappers", "native", *_WRAPPERS),
    _values("`Struct`, `Value`, `ListValue` as JSON", "native", "attributes", "any", "list"),
    Case(title="values that couldn't be decoded", topic="plain", pick=lambda row: _undecoded(row["val"])),
    Case(title="tombstones", topic="plain", pick=lambda row: _absence(row["val"])),
    Case(title="keys, null and empty ones", topic="plain", column="key", pick=lambda row: row["key"]),
    Case(title="headers", topic="plain", column="headers", pick=lambda row: row["headers"]),
    Case(title="offsets and times", topic="plain", column="key", pick=lambda row: row["kafka"]),
)
CHANGES: Sequence[Case] = (
    _values("columns beside changed ones", "plain, changed", "a_double", "a_string", "maybe_bytes", "many_int64"),
    _values("renamed", "plain, changed", "renamed"),
    _values("`int32` to `int64`, `float` to `double`", "plain, changed", "widened", "precise"),
    _values("the same in lists and maps", "plain, changed", "widths", "ratios"),
    _values("removed, and removed and back", "plain, changed", "removed", "returning"),
    _values("`int32` to `string`", "plain, changed", "retyped", "retyped_deleted_N"),
    _values("scalars and lists added", "plain, changed", "added", "added_strings"),
    _values(
        "structs, lists of them and maps added",
        "plain, changed",
        "added_struct",
        "added_nothing",
        "added_items",
        "added_map",
    ),
    _values("all of it inside structs at depth 3", "plain, changed", "nested"),
    _values("inside structs in lists", "plain, changed", "items"),
    _values("inside structs in maps", "plain, changed", "items_by_name"),
    _values("columns of native types beside them", "native, changed", "at", "times", "took", "a_uint64", "attributes"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldCase:
    title: str
    topic: Topic
    path: tuple[str, ...]


FIELDS: Sequence[FieldCase] = (
    FieldCase(title="a field of `val`", topic="plain", path=("val", "a_int32")),
    FieldCase(title="a field at depth 3", topic="plain", path=("val", "nested", "two", "three", "renamed")),
    FieldCase(title="a field after a change of the schema", topic="plain, changed", path=("val", "a_int32")),
    FieldCase(title="a renamed field", topic="plain, changed", path=("val", "renamed")),
    FieldCase(
        title="a field renamed at depth 3", topic="plain, changed", path=("val", "nested", "two", "three", "renamed")
    ),
)
FROM_OFFSET = 3


def level(found: Sequence[Row], expected: Sequence[Row], case: Case, schema: Schema) -> Level:
    for nulls, word in ((True, "right"), (False, "nulls")):
        ours, theirs = (_picked(rows, case, schema, nulls=nulls) for rows in (expected, found))
        if ours == theirs:
            return word  # type: ignore[return-value]
    return "wrong"


def _picked(rows: Sequence[Row], case: Case, schema: Schema, *, nulls: bool) -> list[Any]:
    requests = [{name: row[name] for name in ("kafka", case.column)} for row in rows]
    return [(row["kafka"], case.pick(row)) for row in canonical_rows(requests, schema, nulls=nulls)]
