"""Runs of offsets map records to targets."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archiver.republish.offset_map import PlacesInTarget
from archiver.republish.offset_runs import Runs
from archiver.republish.progress_log import Begun, Course, MovedUpTo, entries_of

COURSE = Course(cluster_id="c", topic="t", table_id="u", target="v", target_id="w", start="", where="")
_gaps = st.lists(st.integers(1, 4), min_size=1, max_size=40)
_portions = st.lists(_gaps, min_size=1, max_size=6)


def places(runs: Runs) -> dict[int, int]:
    return {source + number: target + number for source, target, count in runs.to_json() for number in range(count)}


def written(portions: list[list[int]]) -> tuple[list[Runs], dict[int, int]]:
    parts, expected = [], {}
    source, target = 10, 3
    for gaps in portions:
        offsets = source + np.cumsum(gaps)
        parts.append(Runs.of(offsets.astype(np.int64), target))
        expected |= {int(offset): target + number for number, offset in enumerate(offsets)}
        source, target = int(offsets[-1]), target + len(gaps) + len(gaps) % 2
    return parts, expected


@given(_portions)
def test_runs_hold_every_record(portions: list[list[int]]) -> None:
    parts, expected = written(portions)
    joined = Runs.joined(parts)
    assert places(joined) == expected
    assert joined.records == len(expected)
    assert places(Runs.from_json(json.loads(json.dumps(joined.to_json())))) == expected
    assert {source: target for piece in joined.pieces(2) for source, target in places(piece).items()} == expected
    ends = joined.sources + joined.counts
    goes_on = (ends[:-1] == joined.sources[1:]) & (joined.targets[:-1] + joined.counts[:-1] == joined.targets[1:])
    assert not goes_on.any()


@given(_portions, st.integers(0, 300))
def test_a_reader_goes_on_at_the_next_record(portions: list[list[int]], offset: int) -> None:
    parts, expected = written(portions)
    later = [target for source, target in expected.items() if source >= offset]
    assert Runs.joined(parts).place_of(offset) == (min(later) if later else None)

    reached = max(expected) + 5
    entries: list[Begun | MovedUpTo] = [Begun(partition=0, offset=10, course=COURSE)]
    for number, part in enumerate(parts):
        after, last = len(entries) - 1, int(part.sources[-1] + part.counts[-1])
        is_last = number == len(parts) - 1
        entries += entries_of(0, after=after, next_offset=reached if is_last else last, runs=part)
    reader = PlacesInTarget({0: frozenset([offset])}, {0: 0})
    reader.read(entries)
    if offset > reached:
        assert reader.of(0, offset) is None
    else:
        assert reader.of(0, offset) == (min(later) if later else max(expected.values()) + 1)
    assert reader.of(1, offset) is None


def test_no_runs() -> None:
    nothing = Runs.joined([])
    assert (len(nothing), nothing.records, nothing.place_of(0), nothing.to_json()) == (0, 0, None, [])
    assert Runs.from_json([]).records == 0


def test_entries_of_many_runs_are_several_that_follow_each_other() -> None:
    runs = Runs.of(np.arange(0, 50_000, 2, dtype=np.int64), 0)
    entries = [*entries_of(3, after=7, next_offset=60_000, runs=runs)]
    assert [entry.sequence for entry in entries] == [8, 9, 10]
    assert [entry.next_offset for entry in entries] == [19_999, 39_999, 60_000]
    assert places(Runs.joined([entry.runs for entry in entries])) == places(runs)
    (only,) = entries_of(3, after=0, next_offset=9, runs=Runs.joined([]))
    assert (only.sequence, only.next_offset, len(only.runs)) == (1, 9, 0)
