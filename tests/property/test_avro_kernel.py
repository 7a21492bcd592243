"""The Avro kernel against fastavro and Java's rules."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from schema_mapping.avro.mapping import AvroMapping
from tests.support.schemas.avro_judge import is_readable
from tests.support.schemas.strategies_avro import Case, cases, mapping_of, shown, without_added, written


def checked(mapping: AvroMapping, values: list[bytes | None]) -> list[Any]:
    rows = mapping.decode(pa.array(values, pa.binary()))
    rows.validate(full=True)
    assert mapping.encode(rows).to_pylist() == values
    assert mapping.encode(rows.slice(1)).to_pylist() == values[1:]
    parts = pa.chunked_array([pa.array(values[:2], pa.binary()), pa.array(values[2:], pa.binary())])
    assert mapping.decode(parts).equals(rows)
    return rows.to_pylist()


@given(cases(), st.data())
def test_values_of_fastavro_are_columns(case: Case, data: st.DataObject) -> None:
    mapping = mapping_of(case.schema)
    given_values = data.draw(st.lists(case.values, min_size=1, max_size=5))
    rows = checked(mapping, [None, *(written(case.schema, value) for value in given_values)])
    assert [row["__raw__"] for row in rows[1:]] == [None] * len(given_values)
    assert [without_added(row) for row in rows[1:]] == [
        without_added(shown(case.schema, value)) for value in given_values
    ]


@given(cases(), st.data())
def test_other_bytes_come_back_and_fail_as_java_does(case: Case, data: st.DataObject) -> None:
    mapping = mapping_of(case.schema)
    good = written(case.schema, data.draw(case.values))
    values = [good, *data.draw(st.lists(mutants(good), min_size=1, max_size=5)), good]
    rows = checked(mapping, values)
    failed = [row["__err__"] is not None for row in rows]
    assert failed == [not is_readable(case.schema, value) for value in values]
    assert rows[0] == rows[-1] or "nan" in str(rows[0])
    assert rows[0]["__raw__"] is None


def mutants(value: bytes) -> st.SearchStrategy[bytes]:
    places = st.integers(0, len(value))
    return st.one_of(
        places.map(lambda at: value[:at]),
        st.tuples(places, st.binary(min_size=1, max_size=2)).map(
            lambda cut: value[: cut[0]] + cut[1] + value[cut[0] :]
        ),
        st.tuples(places, st.binary(min_size=1, max_size=2)).map(
            lambda cut: value[: cut[0]] + cut[1] + value[cut[0] + 1 :]
        ),
        st.binary(max_size=40),
    )
