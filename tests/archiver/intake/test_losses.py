"""Offsets of an abandoned log, without gaps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from archiver.intake.clients import Clients
from archiver.intake.losses import PartitionLosses, losses
from archiver.intake.salvage import Salvage
from archiver.intake.state import IntakeState
from catalog.offset_range import OffsetRange


def salvage(*parts: tuple[int, int], state_end: int = 0) -> Salvage:
    state = IntakeState(clients=Clients(most=0), next_offsets={0: state_end} if state_end else {})
    return Salvage(state=state, parts={0: tuple(OffsetRange.half_open(0, *part) for part in parts)})


def of_partition(source: Salvage, *, end: int, reported: int = 0, skip: int = 0) -> PartitionLosses:
    (partition,) = losses(source, {0: end}, ({0: reported},), partitions=1, skip=skip, least={})
    return partition


def spans(offsets: tuple[OffsetRange, ...]) -> list[tuple[int, int]]:
    return [(run.first, run.end) for run in offsets]


def test_a_gone_log_loses_what_was_reported_after_the_table() -> None:
    partition = of_partition(salvage(), end=10, reported=25, skip=100)
    assert (spans(partition.lost), partition.saved, partition.next_offset) == ([(10, 25)], (), 125)
    assert partition.doubtful == OffsetRange(0, 25, 124)
    assert partition.steps == ((OffsetRange(0, 10, 124), None),)


def test_readable_rows_are_saved_around_damage() -> None:
    partition = of_partition(salvage((0, 5), (5, 12), (12, 20), (30, 40)), end=5, reported=45)
    assert spans(partition.saved) == [(5, 20), (30, 40)]
    assert spans(partition.lost) == [(20, 30), (40, 45)]
    assert partition.doubtful is None
    assert partition.steps == (
        (None, OffsetRange(0, 5, 19)),
        (OffsetRange(0, 20, 29), OffsetRange(0, 30, 39)),
        (OffsetRange(0, 40, 44), None),
    )


def test_a_header_knows_offsets_that_no_report_has() -> None:
    assert spans(of_partition(salvage(state_end=8), end=2, reported=4).lost) == [(2, 8)]


def test_nothing_is_lost_if_the_table_has_all() -> None:
    partition = of_partition(salvage((0, 7)), end=7, reported=7)
    assert (partition.saved, partition.lost, partition.steps, partition.next_offset) == ((), (), (), 7)


@given(
    sizes=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=6),
    end=st.integers(0, 20),
    reported=st.integers(0, 60),
    skip=st.integers(0, 3),
)
def test_steps_cover_every_offset_once(sizes: list[tuple[int, int]], end: int, reported: int, skip: int) -> None:
    parts, at = [], end
    for gap, size in sizes:
        parts.append((at + gap, at + gap + size))
        at += gap + size
    partition = of_partition(salvage(*parts), end=end, reported=reported, skip=skip)
    reached = end
    for step in partition.steps:
        assert step != (None, None)
        for offsets in step:
            if offsets is not None:
                assert offsets.first == reached
                reached = offsets.end
    assert reached == partition.next_offset == max(at, reported, end) + skip
    assert {offset for run in partition.saved for offset in range(run.first, run.end)} == {
        offset for start, stop in parts for offset in range(start, stop)
    }
