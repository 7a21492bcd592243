from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from archiver.ingest.chain import Chain
from tests.catalog.memory import span


def bounds(ranges: tuple[object, ...]) -> list[tuple[int, int]]:
    return [(one.start_offset, one.end_offset) for one in ranges]  # type: ignore[attr-defined]


def test_what_is_ahead_waits_for_the_gap() -> None:
    chain = Chain(0)
    assert chain.push([span(0, 20, 30)]) == ()
    assert chain.spans(50) == ((0, 20), (30, 50))
    assert bounds(chain.push([span(0, 0, 10)])) == [(0, 10)]
    assert bounds(chain.push([span(0, 10, 20)])) == [(10, 20), (20, 30)]
    assert chain.next == 30
    assert chain.spans(50) == ((30, 50),)
    assert chain.spans(30) == ()


def test_what_comes_too_late_is_handed_on_to_be_refused() -> None:
    chain = Chain(0)
    chain.push([span(0, 10, 20), span(0, 40, 50)])
    assert bounds(chain.restart(15)) == [(10, 20)]
    assert chain.next == 15
    assert bounds(chain.restart(40)) == [(40, 50)]
    assert chain.next == 50


def test_what_never_found_its_place_is_left_over() -> None:
    chain = Chain(0)
    chain.push([span(0, 10, 20)])
    assert bounds(chain.leftover()) == [(10, 20)]
    assert chain.leftover() == ()
    assert chain.spans(20) == ((0, 20),)


def test_epochs_never_fall_along_the_chain() -> None:
    chain = Chain(0)
    first, second, third = (
        replace(span(0, start, start + 10), leader_epoch=epoch) for start, epoch in ((0, 5), (10, 2), (20, 7))
    )
    out = chain.push([second, third]) + chain.push([first])
    assert [each.leader_epoch for each in out] == [5, 5, 7]
    assert [each.leader_epoch for each in chain.push([replace(first, start_offset=30, end_offset=40)])] == [7]


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=12), seed=st.integers())
def test_any_order_of_tasks_gives_one_order_of_ranges(lengths: list[int], seed: int) -> None:
    edges = [sum(lengths[:place]) for place in range(len(lengths) + 1)]
    ranges = [span(0, start, end) for start, end in pairwise(edges)]
    shuffled = Random(seed).sample(ranges, len(ranges))
    chain = Chain(0)
    out = [one for each in shuffled for one in chain.push([each])]
    assert out == ranges
    assert chain.next == edges[-1]
