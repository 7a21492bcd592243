"""Matches in order of several files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import ReplayError
from archiver.find import order
from archiver.find.block_matches import BlockMatches
from archiver.find.order import OrderedMatches, PendingMatches, SortPlace, place_of

RECORDS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(-2, 5)), unique_by=lambda it: it[:2])


def block(records: list[tuple[int, int, int]]) -> BlockMatches:
    columns = np.array(records, np.int64).reshape(-1, 3).T
    nothing: Any = SimpleNamespace()
    partitions, offsets, times = columns
    return BlockMatches(nothing, partitions, offsets, times, np.arange(len(records)))


def addresses(matches: OrderedMatches) -> list[tuple[int, int]]:
    return [(int(partition), abs(int(offset))) for partition, offset in matches.keys[2:].T]


@given(st.lists(RECORDS, max_size=4), st.booleans())
def test_blocks_are_merged_by_time(blocks: list[list[tuple[int, int, int]]], oldest_first: bool) -> None:
    unique = dict.fromkeys(record[:2] for records in blocks for record in records)
    times = {(p, o): t for records in blocks for p, o, t in records}
    pending = PendingMatches(oldest_first)
    seen: set[tuple[int, int]] = set()
    for records in blocks:
        fresh = [(p, o, times[p, o]) for p, o, _ in records if (p, o) not in seen]
        seen |= {(p, o) for p, o, _ in fresh}
        pending.add(block(fresh), 0)
    sign = 1 if oldest_first else -1
    expected = sorted(unique, key=lambda it: (sign * times[it], it[0], sign * it[1]))
    early = pending.ready(0)
    assert all(key < 0 for key in early.keys[0])
    assert addresses(early) + addresses(pending.ready(None)) == expected
    assert not len(pending)


def test_only_the_best_are_kept_under_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "_TRIMMED", 3)
    pending = PendingMatches(oldest_first=False, limit=2)
    for number in range(50):
        pending.add(block([(0, number, number % 7)]), 0)
        assert len(pending) <= 5
    assert addresses(pending.ready(None))[:2] == [(0, 48), (0, 41)]


def test_too_many_waiting_matches_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "MOST_WAITING", 3)
    pending = PendingMatches(oldest_first=False)
    pending.add(block([(0, number, 1) for number in range(3)]), 0)
    with pytest.raises(ReplayError, match=r"too many records match .* Set --limit, narrow the search with --from"):
        pending.add(block([(0, 9, 1)]), 0)


def test_a_search_continues_after_a_place() -> None:
    records = [(0, number, number // 2) for number in range(6)]
    first = PendingMatches(oldest_first=False)
    first.add(block(records), 0)
    latest = place_of(first.ready(None), 2)
    assert latest == SortPlace(-1, 0, 0, -3)
    again = PendingMatches(oldest_first=False, after=latest)
    again.add(block(records), 0)
    assert addresses(again.ready(None)) == [(0, 2), (0, 1), (0, 0)]
