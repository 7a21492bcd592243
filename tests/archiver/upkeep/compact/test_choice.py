"""Which files are compacted together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from archiver.archive.table_files import TableFile, ValueBounds
from archiver.upkeep.compact.choice import CompactLimits, FileGroup, Reason, SourceFile, SourceRange, choose

TARGET = 1_000
LIMITS = CompactLimits(target_bytes=TARGET, min_files=3)


def file(
    low: int,
    high: int,
    size: int = 10,
    *,
    partition: int | None = 0,
    day: int = 1,
    spec: int = 0,
    deletes: bool = False,
    known: bool = True,
    nan: bool = False,
) -> SourceFile:
    bounds = None if partition is None else ValueBounds(partition, partition)
    inside = TableFile(
        path=f"{spec}/{day}/{partition}/{low}-{high}-{size}-{known}",
        format="parquet",
        rows=high - low + 1,
        size_bytes=size,
        spec_id=spec,
        partition_values=(day, "eu"),
        partitions=bounds,
        offsets=ValueBounds(low, high),
        latest=None,
        has_nan_bounds=nan,
    )
    ranges = (SourceRange(partition=partition or 0, start_offset=low, end_offset=high + 1),) if known else ()
    return SourceFile(file=inside, ranges=ranges, has_deletes=deletes)


def chosen(*files: SourceFile, limits: CompactLimits = LIMITS) -> list[list[str]]:
    return [[PurePath(path).name for path in group.paths] for group in choose(files, limits)]


def lows(*files: SourceFile, limits: CompactLimits = LIMITS) -> list[list[int]]:
    return [
        [source.file.offsets.low for source in group.files if source.file.offsets] for group in choose(files, limits)
    ]


def test_small_neighbours_become_one_file() -> None:
    assert lows(file(0, 9), file(20, 29), file(10, 19)) == [[0, 10, 20]]
    assert lows(file(0, 9), file(10, 19)) == [], "fewer than min_files"
    assert lows(file(0, 9, 700), file(10, 19, 400)) == [[0, 10]], "as many as a whole file"


def test_files_of_other_places_stay_apart() -> None:
    apart = [file(0, 9, day=2), file(10, 19, spec=1), file(20, 29, partition=1)]
    assert lows(file(0, 9), file(10, 19), *apart) == []


def test_no_file_that_stays_lies_between() -> None:
    small = [file(n, n + 9) for n in (0, 10, 30, 40)]
    assert lows(*small, file(20, 29, 900)) == []
    assert lows(*small, file(50, 59), file(20, 29, 900)) == [[30, 40, 50]]


def test_overlap_is_a_reason_whatever_the_size() -> None:
    groups = choose([file(0, 99, 5_000), file(50, 149, 5_000), file(200, 299, 5_000)], LIMITS)
    assert [(len(group.files), group.reasons, group.is_cut) for group in groups] == [(2, {Reason.OVERLAP}, True)]


def test_bounds_beside_nan_are_a_reason_and_come_first() -> None:
    small = [file(n, n + 9, partition=1) for n in (0, 10, 20)]
    nan = [file(0, 9, 900, nan=True), file(10, 19, 900), file(20, 29, partition=None, nan=True)]
    groups = choose([*small, *nan], LIMITS)
    assert [group.reasons for group in groups] == [{Reason.NAN}, {Reason.NAN, Reason.MIXED}, {Reason.SMALL}]
    assert [len(group.files) for group in groups] == [1, 1, 3]


def test_deletes_are_a_reason_for_one_file_alone() -> None:
    (group,) = choose([file(0, 9, 900, deletes=True), file(10, 19, 900)], LIMITS)
    assert (len(group.files), group.reasons) == (1, {Reason.DELETES})


def test_files_of_others_are_never_put_together_with_known_ones() -> None:
    """The registry can only account for a group if it knows all its files, or none."""
    ours, foreign = [file(n, n + 9) for n in (0, 10, 20)], [file(n, n + 9, known=False) for n in (30, 40, 50)]
    assert lows(*ours, *foreign) == [[0, 10, 20], [30, 40, 50]]
    assert lows(file(0, 9), file(10, 19, known=False), file(20, 29)) == []
    assert lows(file(0, 50), file(10, 19, known=False), file(20, 29)) == [[0, 20]]


def test_a_file_of_several_partitions_is_always_split() -> None:
    (group,) = choose([file(0, 9, 5_000, partition=None)], LIMITS)
    assert (group.is_mixed, group.is_cut) == (True, True)


def test_few_small_files_of_several_partitions_wait() -> None:
    sparing = CompactLimits(target_bytes=TARGET, min_files=3, saves_work=True)
    assert choose([file(0, 9, 10, partition=None), file(20, 29, 10, partition=None)], sparing) == []
    assert len(choose([file(n, n + 9, 10, partition=None) for n in (0, 20, 40)], sparing)) == 1
    assert len(choose([file(0, 9, TARGET, partition=None)], sparing)) == 1
    assert len(choose([file(0, 9, 10, partition=None, deletes=True)], sparing)) == 1


def test_work_is_saved_where_one_file_is_larger_than_the_rest() -> None:
    growing = [file(0, 9, 700), *(file(n, n + 9, 10) for n in range(10, 60, 10))]
    assert lows(*growing) == [[0, 10, 20, 30, 40, 50]]
    sparing = CompactLimits(target_bytes=TARGET, min_files=3, saves_work=True)
    assert lows(*growing, limits=sparing) == []
    assert len(lows(*growing, *(file(n, n + 9, 1) for n in range(60, 120, 10)), limits=sparing)[0]) == 12


def test_only_the_asked_partitions() -> None:
    files = [file(n, n + 9, partition=p) for p in range(3) for n in (0, 10, 20)]
    assert {
        p
        for g in choose(files, CompactLimits(target_bytes=TARGET, min_files=3, partitions=frozenset({1})))
        for s in g.files
        if (p := s.partition) is not None
    } == {1}


MOVING = CompactLimits(target_bytes=TARGET, min_files=3, spec_id=1)


def test_files_of_other_specs_stay_unless_they_shall_move() -> None:
    files = [file(0, 9, 5_000), file(10, 19, 900, day=2), file(20, 29, 900, spec=2), file(30, 39, 900, spec=1)]
    assert choose(files, LIMITS) == []
    (group,) = choose(files[1:], MOVING)
    assert (lows(*files[1:], limits=MOVING), group.reasons) == ([[10, 20]], {Reason.SPEC})
    assert (group.is_moved, group.is_cut) == (True, True)
    assert lows(*files, limits=MOVING) == [[0], [10, 20]], "a group has no more bytes than a task may take"


def test_files_move_by_kafka_partition_and_writer() -> None:
    files = [
        file(0, 9),
        file(10, 19, partition=1),
        file(20, 29, known=False),
        file(30, 39, day=2),
        file(0, 9, partition=None),
        file(40, 49, deletes=True),
    ]
    groups = choose(files, MOVING)
    assert sorted(
        (tuple(source.partition for source in group.files), sorted(group.reasons)) for group in groups[:2]
    ) == [
        ((0,), ["spec"]),
        ((0, 0, 0), ["deletes", "spec"]),
    ]
    assert [group.reasons for group in groups[2:]] == [{Reason.SPEC}, {Reason.SPEC, Reason.MIXED}]
    assert lows(*files, limits=replace(MOVING, partitions=frozenset({1}))) == [[10], [0]], (
        "the mixed file may have some"
    )


def test_no_file_that_stays_lies_between_those_that_move() -> None:
    files = [file(0, 9), file(10, 19, 900, spec=1), file(20, 29), file(30, 39, day=2)]
    assert lows(*files, limits=MOVING) == [[0], [20, 30]]


def test_files_overlapping_all_partitions_move_one_by_one() -> None:
    """In a table by columns each file may overlap all files: too much for one task."""
    files = [file(low, low + 100, 900, day=day) for low in (0, 50) for day in (1, 2)]
    assert lows(*files, limits=MOVING) == [[0, 0, 50, 50]]
    many = [file(low, low + 60, 900, day=day) for low in (0, 50, 100) for day in (1, 2, 3)]
    groups = choose(many, MOVING)
    assert [{source.file.partition_values[0] for source in group.files} for group in groups] == [{1}, {2}, {3}]


def test_left_file_stays_and_its_neighbours_proceed() -> None:
    files = [file(low, low + 9) for low in range(0, 70, 10)]
    left = replace(LIMITS, left=frozenset({files[3].file.path}))
    assert lows(*files, limits=left) == [[0, 10, 20], [40, 50, 60]]
    files[3] = file(25, 39, deletes=True)
    left = replace(LIMITS, left=frozenset({files[3].file.path}))
    assert lows(*files, limits=left) == [[40, 50, 60]], "what overlaps it stays, too; the two before it are few"
    mixed = [file(0, 9, 900, partition=None), file(5, 30, 900, partition=None)]
    assert lows(*mixed, limits=replace(LIMITS, left=frozenset({mixed[0].file.path}))) == [[5]]
    moving = [file(low, low + 9) for low in (0, 10, 20)]
    assert lows(*moving, limits=replace(MOVING, left=frozenset({moving[1].file.path}))) == [[0], [20]]


places = st.builds(
    lambda low, length, size, partition, day, deletes, known, spec: file(
        low, low + length, size, partition=partition, day=day, deletes=deletes, known=known, spec=spec
    ),
    st.integers(0, 400),
    st.integers(0, 60),
    st.integers(1, 1_500),
    st.sampled_from([0, 1, None]),
    st.integers(1, 2),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
)


@given(
    st.lists(places, max_size=30, unique_by=lambda source: source.file.path),
    st.integers(2, 6),
    st.booleans(),
    st.sets(st.integers(0, 29), max_size=3),
)
def test_any_choice_is_sound(files: list[SourceFile], min_files: int, saves_work: bool, left: set[int]) -> None:
    damaged = frozenset(source.file.path for number, source in enumerate(files) if number in left)
    limits = CompactLimits(target_bytes=TARGET, min_files=min_files, saves_work=saves_work, left=damaged)
    groups = choose(files, limits)
    paths = [path for group in groups for path in group.paths]
    assert not damaged.intersection(paths)
    assert len(paths) == len(set(paths)), "each file is in one group at most"
    for group in groups:
        assert len({place(source) for source in group.files}) == 1
        if group.is_mixed:
            continue
        assert group.is_cut == (group.size_bytes > LIMITS.most_bytes)
        stays = [source for source in files if source.file.path not in paths and place(source) == place(group.files[0])]
        assert not any(lies_between(source, group) for source in stays)


@given(st.lists(places, max_size=30, unique_by=lambda source: source.file.path))
def test_any_file_of_another_spec_moves_once(files: list[SourceFile]) -> None:
    groups = choose(files, MOVING)
    paths = [path for group in groups for path in group.paths]
    assert len(paths) == len(set(paths))
    moved = [group for group in groups if group.is_moved]
    assert {path for group in moved for path in group.paths} == {
        source.file.path for source in files if source.file.spec_id != 1
    }
    for group in moved:
        assert len({(source.partition, bool(source.ranges)) for source in group.files}) == 1
    assert [group for group in groups if not group.is_moved] == choose(
        (source for source in files if source.file.spec_id == 1), LIMITS
    ), "the others are chosen as without"


def place(each: SourceFile) -> tuple[Any, ...]:
    return each.file.spec_id, each.file.partition_values, each.partition, bool(each.ranges)


def lies_between(each: SourceFile, group: FileGroup) -> bool:
    bounds = [item.file.offsets for item in group.files]
    assert each.file.offsets is not None
    low, high = min(item.low for item in bounds if item), max(item.high for item in bounds if item)
    return low < each.file.offsets.low and each.file.offsets.high < high
