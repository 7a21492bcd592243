"""The clock against its own definition, written down a second time without vectors or chunks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archiver.ingest.kafka_log.ingest_clock import IngestClock

HALF, AHEAD = 4, 100
Batches = list[tuple[int, int]]
batches = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 70)), max_size=60)


def by_definition(log: Batches) -> list[int]:
    answer = []
    for centre in range(len(log)):
        ahead, held = 0, 0
        while ahead < HALF and centre + ahead + 1 < len(log) and held + log[centre + ahead + 1][1] <= AHEAD:
            ahead += 1
            held += log[centre + ahead][1]
        stopped_by_bytes = ahead < HALF and centre + ahead + 1 < len(log)
        reach = ahead if stopped_by_bytes else HALF
        window = sorted(time for time, _ in log[max(centre - reach, 0) : centre + reach + 1])
        answer.append(window[(len(window) - 1) // 2])
    return answer


@given(log=batches, cuts=st.lists(st.integers(0, 60), max_size=10))
def test_values_follow_the_definition_however_the_log_is_cut(log: Batches, cuts: list[int]) -> None:
    clock = IngestClock(half_window=HALF, max_ahead_bytes=AHEAD)
    edges = [0, *sorted(min(cut, len(log)) for cut in cuts), len(log)]
    decided: list[int] = []
    for start, end in pairwise(edges):
        part = np.array(log[start:end], np.int64).reshape(-1, 2)
        decided += clock.push(part[:, 0], part[:, 1]).tolist()
        held = sum(size for _, size in log[len(decided) + 1 : end])
        assert clock.undecided == end - len(decided)
        assert clock.undecided <= HALF
        assert held <= AHEAD
    decided += clock.finish().tolist()
    assert decided == by_definition(log)
    assert clock.undecided == 0
