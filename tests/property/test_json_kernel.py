"""The JSON kernel against CPython's json."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from schema_mapping.json.mapping import JsonMapping
from tests.support.schemas.json_judge import is_json
from tests.support.schemas.strategies_json import ANYTHING, WRITERS, Case, cases, json_mapping


def checked(mapping: JsonMapping, values: list[bytes | None]) -> list[Any]:
    rows = mapping.decode(pa.array(values, pa.binary()))
    rows.validate(full=True)
    assert mapping.encode(rows).to_pylist() == values
    assert mapping.encode(rows.slice(1)).to_pylist() == values[1:]
    parts = pa.chunked_array([pa.array(values[:2], pa.binary()), pa.array(values[2:], pa.binary())])
    assert mapping.decode(parts).equals(rows)
    return rows.to_pylist()


@given(cases(), st.data())
def test_values_of_schema_have_no_error(case: Case, data: st.DataObject) -> None:
    mapping = json_mapping(case.schema)
    given_values = data.draw(st.lists(case.values, min_size=1, max_size=5))
    written = [data.draw(st.sampled_from(WRITERS))(value).encode() for value in given_values]
    rows = checked(mapping, [None, *written])
    assert [row["__err__"] for row in rows[1:]] == [None] * len(written)


@given(cases(), st.data())
def test_flat_values_need_no_raw(case: Case, data: st.DataObject) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "x": {"type": "number"}, "s": {"type": "string"}, "any": {}},
    }
    mapping = json_mapping(schema)
    value = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "n": st.none() | st.integers(-(2**63), 2**63 - 1),
                "x": st.floats(allow_nan=False, allow_infinity=False),
                "s": st.none() | st.text(max_size=20),
                "any": ANYTHING,
                "more": st.integers(0, 9),
            },
        )
    )
    names = data.draw(st.permutations(list(value)))
    write = data.draw(st.sampled_from(WRITERS[:6]))
    written = write({name: value[name] for name in names}).encode()
    row = checked(mapping, [written])[0]
    assert {name: row[name] for name in ("n", "x", "s")} == {name: value.get(name) for name in ("n", "x", "s")}
    open_part = value.get("any")
    assert (None if row["any"] is None else json.loads(row["any"])) == open_part
    if "any" not in value and "more" not in value:  # what is kept as text has its own spaces and escapes
        assert row["__raw__"] is None


@given(cases(), st.data())
def test_other_bytes_come_back_and_fail_as_rfc_says(case: Case, data: st.DataObject) -> None:
    mapping = json_mapping(case.schema)
    good = json.dumps(data.draw(case.values)).encode()
    values = [good, *data.draw(st.lists(mutants(good), min_size=1, max_size=5)), good]
    rows = checked(mapping, values)
    for row, value in zip(rows, values, strict=True):
        error = row["__err__"]
        if error is None or not error.startswith("other_type"):  # which may come before what isn't JSON
            assert is_json(value) == (error is None), (error, value)
        if error is not None:
            assert 0 <= int(error.partition("@")[2]) <= len(value)
    assert rows[0] == rows[-1] or rows[0]["__form__"] != rows[-1]["__form__"]


def mutants(value: bytes) -> st.SearchStrategy[bytes]:
    places = st.integers(0, len(value))
    pieces = st.one_of(
        st.binary(min_size=1, max_size=2),
        st.sampled_from([b"{", b"}", b"[", b",", b'"', b":", b"\\u", b"-", b"0", b"e1", b" "]),
    )
    return st.one_of(
        places.map(lambda at: value[:at]),
        st.tuples(places, pieces).map(lambda cut: value[: cut[0]] + cut[1] + value[cut[0] :]),
        st.tuples(places, pieces).map(lambda cut: value[: cut[0]] + cut[1] + value[cut[0] + 1 :]),
        st.binary(max_size=8),
    )
