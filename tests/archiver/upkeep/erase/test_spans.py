"""Erased and unjudged offsets."""

from __future__ import annotations

from archiver.upkeep.erase.spans import are_known, counted, left_of


def test_offsets_that_several_files_have_count_once() -> None:
    assert counted([(0, 3, 5), (1, 0, 1), (0, 4, 7)]) == {0: 4, 1: 1}


def test_what_was_erased_before_is_known() -> None:
    assert are_known([(0, 3, 5)], {0: [(2, 4), (4, 9)]})
    assert not are_known([(0, 3, 5), (1, 3, 5)], {0: [(2, 9)]})


def test_what_goes_or_went_needs_no_judgement() -> None:
    unjudged = [(1, 0, 2), (0, 4, 8), (0, 7, 10), (0, 20, 21)]
    assert left_of(unjudged, [], {}) == ((0, 4, 10), (0, 20, 21), (1, 0, 2))
    assert left_of(unjudged, [(0, 5, 6)], {1: [(0, 9)], 0: [(9, 12)]}) == ((0, 4, 5), (0, 6, 9), (0, 20, 21))
