"""Offsets of rows as spans."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archiver.upkeep.offset_spans import offset_spans

OFFSETS = st.lists(st.integers(0, 30) | st.integers(2**63 - 30, 2**63 - 2))


@given(OFFSETS)
def test_spans_have_the_offsets_and_gaps_between(offsets: list[int]) -> None:
    spans = offset_spans(np.array(offsets, np.int64))
    assert [offset for start, end in spans for offset in range(start, end)] == sorted(set(offsets))
    assert all(before[1] < after[0] for before, after in pairwise(spans))
