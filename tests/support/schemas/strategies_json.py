"""Random JSON Schemas and values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from schema_mapping import LedgerState, assign
from schema_mapping.json.mapping import JsonMapping
from schema_mapping.json.schema import JsonSchema

NAMES: Final = st.one_of(st.sampled_from("abcdefg"), st.text(min_size=1, max_size=4))
FLOATS: Final = st.floats(allow_nan=False, allow_infinity=False)
ANYTHING: Final = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), FLOATS, st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
WRITERS: Final[tuple[Callable[[Any], str], ...]] = (
    lambda value: json.dumps(value, separators=(",", ":")),
    json.dumps,
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    lambda value: json.dumps(value, sort_keys=True, separators=(",", ":")),
    lambda value: json.dumps(value, indent=2),
    lambda value: json.dumps(value, indent="\t", ensure_ascii=False),
    lambda value: json.dumps(value, separators=(",", ":")).replace("/", "\\/"),
    lambda value: json.dumps(value) + "\n",
)
"""Each writes a value as a whole, without exceptions."""


class Case(NamedTuple):
    schema: Any
    values: st.SearchStrategy[Any]


SCALARS: Final[tuple[Case, ...]] = (
    Case({"type": "boolean"}, st.booleans()),
    Case({"type": "integer"}, st.integers(-(2**63), 2**63 - 1)),
    Case({"type": "number"}, FLOATS),
    Case({"type": "string"}, st.text(max_size=12)),
    Case({}, ANYTHING),
    Case({"type": ["string", "integer", "null"]}, st.none() | st.text(max_size=3) | st.integers(0, 9)),
)


@st.composite
def cases(draw: st.DrawFn, depth: int = 3) -> Case:
    names = draw(st.lists(NAMES, max_size=5, unique=True))
    members = {name: draw(_types(depth - 1)) for name in names}
    schema = {"type": "object", "properties": {name: case.schema for name, case in members.items()}}
    if not members:
        return Case({"type": "object", "additionalProperties": {"type": "integer"}}, _maps(st.integers(0, 9)))
    values = st.fixed_dictionaries({}, optional={name: st.none() | case.values for name, case in members.items()})
    mixed = st.tuples(values, st.dictionaries(NAMES, ANYTHING, max_size=2), st.randoms(use_true_random=False))
    return Case(schema, mixed.map(lambda parts: _shuffled({**parts[1], **parts[0]}, parts[2], set(members), parts[1])))


def _shuffled(value: dict[str, Any], random: Any, members: set[str], more: dict[str, Any]) -> dict[str, Any]:
    kept = [(name, part) for name, part in value.items() if (name in more and name not in members) or name not in more]
    kept += [(name, part) for name, part in value.items() if name in more and name in members and part is None]
    if random.random() < 0.5:
        random.shuffle(kept)
    return dict(kept)


def _types(depth: int) -> st.SearchStrategy[Case]:
    scalars = st.sampled_from(SCALARS)
    if depth <= 0:
        return scalars
    inner = _types(depth - 1)
    lists = inner.map(
        lambda case: Case({"type": "array", "items": case.schema}, st.lists(st.none() | case.values, max_size=3))
    )
    maps = inner.map(
        lambda case: Case({"type": "object", "additionalProperties": case.schema or True}, _maps(case.values))
    )
    return st.one_of(scalars, lists, maps, cases(depth))


def _maps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(NAMES, values, max_size=3)


def json_mapping(schema: Any, **more: Any) -> JsonMapping:
    mapping = assign(LedgerState(), value=JsonSchema.of(json.dumps(schema)), **more).row.value
    assert isinstance(mapping, JsonMapping)
    return mapping
