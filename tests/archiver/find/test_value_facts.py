"""The registry's answers about file values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from archiver.find.value_facts import ValueFacts
from catalog.value_terms import Lookup

PATHS = [f"file-{number}" for number in range(10)]


class Registry:
    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def absent(self, paths: Sequence[str], lookups: Sequence[Lookup]) -> Mapping[str, Sequence[bool]]:
        self.asked.append((len(paths), len(lookups)))
        return {path: [True] * len(lookups) for path in paths}


def needs(values: int) -> list[tuple[tuple[Lookup, ...], ...]]:
    return [((Lookup(7, number),),) for number in range(values)]


def test_files_without_the_values_are_impossible() -> None:
    registry = Registry()
    facts = ValueFacts.of(needs(2), PATHS, registry.absent)
    assert facts.possible(needs(1)[0]).tolist() == [False] * 10
    assert facts.possible(()).tolist() == [True] * 10
    assert registry.asked == [(10, 2)]


@pytest.mark.parametrize(("values", "files"), [(10, 10), (30, 3), (100, 1), (101, 0)])
def test_many_values_are_looked_up_for_few_files(values: int, files: int) -> None:
    registry = Registry()
    facts = ValueFacts.of(needs(values), PATHS, registry.absent, most=100)
    assert registry.asked == ([(files, values)] if files else [])
    assert facts.absent.size <= 100
    assert facts.possible(needs(1)[0]).tolist() == [False] * files + [True] * (10 - files)
