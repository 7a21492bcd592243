"""Conditions with many parts."""

from __future__ import annotations

import tracemalloc

import numpy as np

from archiver.records.possible import may_hold
from archiver.records.where import Where


def test_a_list_of_values_takes_the_memory_of_few_masks() -> None:
    where = Where.parse(f"offset in ({', '.join(map(str, range(1_000)))})")
    files = 50_000
    tracemalloc.start()
    mask = may_hold(where.condition, lambda leaf: np.zeros(files, np.bool_))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not mask.any()
    assert peak < 10 * files


def test_negated_lists_hold_for_all_values() -> None:
    where = Where.parse("offset in (1, 2)")
    judge = {1: np.array([True, True, False]), 2: np.array([False, True, False])}
    assert may_hold(where.condition, lambda leaf: judge[leaf.value]).tolist() == [True, True, False]  # type: ignore[union-attr, index]
    assert may_hold(where.condition, lambda leaf: judge[leaf.value], negated=True).tolist() == [False, True, False]  # type: ignore[union-attr, index]
