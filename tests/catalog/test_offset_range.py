"""Overlapping ranges of offsets, in groups."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from catalog.offset_range import OffsetRange, clusters

RANGES = st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), max_size=6)


@dataclass(frozen=True, slots=True)
class Member:
    offsets: OffsetRange


def members(drawn: list[tuple[int, int]]) -> list[Member]:
    return [Member(OffsetRange(0, first, first + length - 1)) for first, length in drawn]


@given(RANGES, RANGES)
def test_clusters_have_each_member_once(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    left, right = members(first), members(second)
    groups = list(clusters(left, right))
    assert sorted(member.offsets for group in groups for member in group[0]) == sorted(
        member.offsets for member in left
    )
    assert sorted(member.offsets for group in groups for member in group[1]) == sorted(
        member.offsets for member in right
    )
    covered = [{offset for member in (*mine, *yours) for offset in offsets(member)} for mine, yours in groups]
    assert all(covered)
    assert sum(map(len, covered)) == len(set().union(*covered)), "ranges of two groups don't overlap"


def offsets(member: Member) -> range:
    return range(member.offsets.first, member.offsets.last + 1)


def test_rows_below_offset_0_make_a_group() -> None:
    ((group, _),) = clusters(members([(-1, 1)]), [])
    assert [member.offsets for member in group] == [OffsetRange(0, -1, -1)]
