"""Paths of numbers and names: order and storage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema_mapping import names
from schema_mapping.columns.paths import is_field, path_order, read_path, stored_path
from schema_mapping.errors import EvolutionError

NUMBERS = st.integers(-8, -1) | st.integers(1, names.MEMBER_STEP + 1000)
STEPS = NUMBERS | st.text(st.characters(exclude_categories=("Cs",)))


@given(st.lists(NUMBERS).map(tuple))
def test_a_path_of_numbers_is_kept_as_it_is(path: tuple[int, ...]) -> None:
    assert stored_path(path) == list(path)
    assert read_path(list(path)) == path


@given(st.lists(STEPS, max_size=8).map(tuple))
def test_any_path_comes_back(path: tuple[int | str, ...]) -> None:
    stored = stored_path(path)
    assert read_path(stored) == path
    assert all(-(2**31) <= number < 2**31 for number in stored), "an integer of Postgres"


@given(st.lists(st.lists(STEPS, max_size=3).map(tuple), unique=True))
def test_two_paths_are_never_kept_alike(paths: list[tuple[int | str, ...]]) -> None:
    assert len({tuple(stored_path(path)) for path in paths}) == len(paths)


@given(st.lists(st.lists(NUMBERS, max_size=4).map(tuple)))
def test_numbers_are_sorted_as_ever(paths: list[tuple[int, ...]]) -> None:
    assert sorted(paths, key=path_order) == sorted(paths)


def test_numbers_stand_before_names() -> None:
    assert sorted([("b",), (7,), ("a", 1), (-7,), ("a",)], key=path_order) == [(-7,), (7,), ("a",), ("a", 1), ("b",)]


def test_names_and_numbers_above_zero_are_fields() -> None:
    assert [is_field(step) for step in (1, "", "name", -1, names.UNRECOGNIZED_STEP)] == [True, True, True, False, False]


def test_names_that_no_index_takes_are_refused() -> None:
    with pytest.raises(EvolutionError, match="too long to be kept"):
        stored_path(("x" * 600,) * 3)
