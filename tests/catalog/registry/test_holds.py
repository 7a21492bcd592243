"""Removed records in the check of holds."""

from __future__ import annotations

import pytest

from catalog.ranges.rewrite import RecordSpan, Rewrite, RewriteGroup
from catalog.registry.holds import removed_spans


@pytest.mark.parametrize(
    ("first_offset", "removed"),
    [
        pytest.param(200, (1, 90, 100), id="all of it lies below"),
        pytest.param(95, (1, 90, 95), id="rows at the edge"),
        pytest.param(90, (1, 90, 100), id="the partition begins with it"),
        pytest.param(50, (1, 90, 100), id="the partition begins below it"),
        pytest.param(None, (1, 90, 100), id="the partition begins where it did"),
    ],
)
def test_retired_ranges_are_told_wherever_their_partition_begins(
    first_offset: int | None, removed: tuple[int, int, int]
) -> None:
    span = RecordSpan(partition=1, start_offset=90, end_offset=100, retired=10)
    rewrite = Rewrite(
        commit_id="c",
        reason="expire",
        schema_version=1,
        groups=(RewriteGroup(paths=("a",), emptied=(span,), why="old"),),
        first_offsets={} if first_offset is None else {1: first_offset},
    )
    assert removed_spans(rewrite) == [removed]
