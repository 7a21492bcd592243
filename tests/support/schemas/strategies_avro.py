"""Random Avro schemas, values and expected columns."""

from __future__ import annotations

import io
import json
import math
from typing import Any, Final, NamedTuple

import fastavro
from hypothesis import strategies as st

from schema_mapping import LedgerState, assign
from schema_mapping.avro.mapping import AvroMapping
from schema_mapping.avro.schema import AvroSchema

LEAST_LONG, MOST_LONG = -(2**63), 2**63 - 1
KEYS: Final = st.text(max_size=4)


class Case(NamedTuple):
    schema: Any
    values: st.SearchStrategy[Any]


SCALARS: Final[tuple[Case, ...]] = (
    Case("boolean", st.booleans()),
    Case("int", st.integers(-(2**31), 2**31 - 1)),
    Case("long", st.integers(LEAST_LONG, MOST_LONG)),
    Case("float", st.floats(width=32, allow_nan=False)),
    Case("double", st.floats(allow_nan=False)),
    Case("string", st.text(max_size=20)),
    Case("bytes", st.binary(max_size=20)),
)


@st.composite
def cases(draw: st.DrawFn, depth: int = 3) -> Case:
    return draw(_Naming(draw).record(depth))


class _Naming:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._names = 0

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def record(self, depth: int) -> st.SearchStrategy[Case]:
        name = self._name("Record")
        fields = {f"f{at}": self.type(depth - 1) for at in range(self._draw(st.integers(0, 4)))}
        schema = {
            "type": "record",
            "name": name,
            "fields": [{"name": key, "type": case.schema} for key, case in fields.items()],
        }
        return st.just(Case(schema, st.fixed_dictionaries({key: case.values for key, case in fields.items()})))

    def type(self, depth: int) -> Case:  # noqa: PLR0911 - a table of types
        kinds = ["scalar", "enum", "fixed"] + ["array", "map", "record", "nullable", "union"] * (depth > 0)
        match self._draw(st.sampled_from(kinds)):
            case "scalar":
                return self._draw(st.sampled_from(SCALARS))
            case "enum":
                symbols = ["A", "B", "LONGER_SYMBOL"]
                return Case({"type": "enum", "name": self._name("Enum"), "symbols": symbols}, st.sampled_from(symbols))
            case "fixed":
                size = self._draw(st.integers(1, 20))
                schema = {"type": "fixed", "name": self._name("Fixed"), "size": size}
                return Case(schema, st.binary(min_size=size, max_size=size))
            case "array":
                item = self.type(depth - 1)
                return Case({"type": "array", "items": item.schema}, st.lists(item.values, max_size=4))
            case "map":
                value = self.type(depth - 1)
                return Case({"type": "map", "values": value.schema}, st.dictionaries(KEYS, value.values, max_size=12))
            case "record":
                return self._draw(self.record(depth))
            case "nullable":
                return self._nullable(self.type(depth - 1))
            case _:
                return self._union(depth)

    def _nullable(self, case: Case) -> Case:
        if isinstance(case.schema, list):
            return case
        branches = [case.schema, "null"] if self._draw(st.booleans()) else ["null", case.schema]
        return Case(branches, st.none() | case.values)

    def _union(self, depth: int) -> Case:
        branches = [("string", st.text(max_size=8)), ("long", st.integers(LEAST_LONG, MOST_LONG))]
        record = self._draw(self.record(depth - 1))
        name = record.schema["name"]
        values = [strategy.map(lambda value, kind=kind: (kind, value)) for kind, strategy in branches]
        values.append(record.values.map(lambda value: (name, value)))
        schema: list[Any] = [*(kind for kind, _ in branches), record.schema]
        if self._draw(st.booleans()):
            schema.insert(self._draw(st.integers(0, 3)), "null")
            values.append(st.none())
        return Case(schema, st.one_of(values))


def written(schema: Any, value: Any) -> bytes:
    output = io.BytesIO()
    fastavro.schemaless_writer(output, schema, value)
    return output.getvalue()


def mapping_of(*schemas: Any) -> AvroMapping:
    schema = AvroSchema.of(*(text if isinstance(text, str) else json.dumps(text) for text in schemas))
    mapping = assign(LedgerState(), value=schema).row.value
    assert isinstance(mapping, AvroMapping)
    return mapping


def shown(schema: Any, value: Any) -> Any:  # noqa: PLR0911 - a table of types
    match schema:
        case list():
            if value is None:
                return None
            rest = [branch for branch in schema if branch != "null"]
            if len(rest) == 1:
                return shown(rest[0], value)
            name, inner = value
            return {_name_of(branch): shown(branch, inner) if _name_of(branch) == name else None for branch in rest}
        case {"type": "record", "fields": fields}:
            return {field["name"]: shown(field["type"], value[field["name"]]) for field in fields}
        case {"type": "array", "items": items}:
            return [shown(items, item) for item in value]
        case {"type": "map", "values": values}:
            return [(key, shown(values, item)) for key, item in value.items()]
        case _:
            return value


def without_added(value: Any) -> Any:
    match value:
        case dict():
            return {key: without_added(item) for key, item in value.items() if not key.startswith("__")}
        case list():
            return [without_added(item) for item in value]
        case tuple():
            return tuple(without_added(item) for item in value)
        case float() if math.isnan(value):
            return "NaN"
        case _:
            return value


def _name_of(schema: Any) -> str:
    return schema["name"] if isinstance(schema, dict) else schema
