"""Rewritten ranges account for every record, or nothing changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.current_ranges import current_ranges
from catalog.digests import add_digests, digest_text
from catalog.errors import RewriteRefused
from catalog.journal_entries import FORMAT, JournaledCommit
from catalog.model import DataFileInfo, TranslatedRange, new_id
from catalog.ranges.holes import Acceptance
from catalog.ranges.regrouping import regrouped
from catalog.ranges.rewrite import NewFile, RecordSpan, Rewrite, RewriteGroup
from catalog.ranges.stored_ranges import StoredRange
from tests.support.catalog.memory import file, span


def digest_of(offsets: Iterable[int]) -> str:
    return digest_text(sum(pow(7, offset + 1, 1 << 128) for offset in offsets))


def stored(start: int, end: int, *, partition: int = 0) -> TranslatedRange:
    range_ = span(partition, start, end)
    info = file(f"s3://b/orders-{new_id().lower()}.parquet", rows=end - start)
    return replace(range_, files=(replace(info, digest=digest_of(range(start, end))),))


def record_span(start: int, end: int, *, partition: int = 0, **less: int) -> RecordSpan:
    rows = end - start - sum(less.values())
    digest = None if less else digest_of(range(start, end))
    return RecordSpan(partition=partition, start_offset=start, end_offset=end, rows=rows, digest=digest, **less)


def new_file(*spans: RecordSpan) -> NewFile:
    rows, digest = sum(part.rows for part in spans), add_digests(part.digest for part in spans)
    return NewFile(file=replace(file(f"s3://b/new-{new_id().lower()}.parquet", rows=rows), digest=digest), spans=spans)


def paths(ranges: Sequence[TranslatedRange]) -> tuple[str, ...]:
    return tuple(entry.path for range_ in ranges for entry in range_.files)


def rewrite(group: RewriteGroup) -> Rewrite:
    return Rewrite(commit_id=new_id(), reason="compact", schema_version=2, groups=(group,))


def done(group: RewriteGroup, held: Sequence[StoredRange], *, is_done: bool = False) -> tuple[StoredRange, ...]:
    return regrouped(rewrite(group), group, held, is_done=is_done)


def seen(ranges: Iterable[StoredRange]) -> list[tuple[int, int, int, int, int]]:
    return [
        (range_.start_offset, range_.end_offset, len(range_.files), range_.rows, range_.expected) for range_ in ranges
    ]


OLD = [stored(0, 10), stored(10, 20), stored(20, 30)]
HELD = [StoredRange.of(source, commit_id="A") for source in OLD]


def test_three_files_become_two() -> None:
    group = RewriteGroup(paths=paths(OLD), files=(new_file(record_span(0, 15)), new_file(record_span(15, 30))))
    made = done(group, HELD)
    assert seen(made) == [(0, 15, 1, 15, 15), (15, 30, 1, 15, 15)]
    assert [range_.paths for range_ in made] == [(path,) for path in group.new_paths]
    assert add_digests(range_.digest for range_ in made) == add_digests(range_.digest for range_ in OLD)


def test_one_file_may_hold_distant_ranges_of_many_partitions() -> None:
    distant = stored(5, 9, partition=3)
    merged = new_file(record_span(0, 10), record_span(20, 30), record_span(5, 9, partition=3))
    group = RewriteGroup(paths=paths([OLD[0], OLD[2], distant]), files=(merged,))
    made = done(group, [*HELD, StoredRange.of(distant)])
    assert seen(made) == [(0, 10, 1, 10, 10), (20, 30, 1, 10, 10), (5, 9, 1, 4, 4)]
    assert {path for range_ in made for path in range_.paths} == {merged.file.path}
    assert len({range_.id for range_ in made}) == 3


def test_range_splits_into_files_that_are_merged_again() -> None:
    spread_over = (
        new_file(replace(record_span(0, 10), rows=4, digest=digest_of(range(4)))),
        new_file(replace(record_span(0, 10), rows=6, digest=digest_of(range(4, 10)))),
    )
    (range_,) = done(RewriteGroup(paths=paths(OLD[:1]), files=spread_over), HELD)
    assert (range_.start_offset, range_.end_offset, [piece.rows for piece in range_.files]) == (0, 10, [4, 6])
    part = replace(record_span(0, 10), rows=4, digest=digest_of(range(4)))
    group = RewriteGroup(paths=(range_.paths[0], *paths(OLD[2:])), files=(new_file(part, record_span(20, 30)),))
    first, last = done(group, [range_, *HELD[1:]])
    assert first.paths == (range_.paths[1], group.new_paths[0])
    assert first.files[0] == range_.files[1]
    assert (first.rows, first.expected, first.digest) == (10, 10, OLD[0].digest)
    assert last.paths == group.new_paths


def test_retired_records_leave_a_range_without_a_file() -> None:
    gone = tuple(replace(record_span(*range_.offsets, retired=10), digest=None) for range_ in HELD[:2])
    group = RewriteGroup(paths=paths(OLD[:2]), emptied=gone, why="older than a year")
    made = done(group, HELD)
    assert seen(made) == [(0, 10, 1, 0, 0), (10, 20, 1, 0, 0)]
    assert [(range_.paths, range_.files[0].retired) for range_ in made] == [((), 10), ((), 10)]


def test_what_is_left_out_on_purpose_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="say why"):
        RewriteGroup(paths=("a",), emptied=(record_span(0, 10, retired=10),))


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 15), (15, 29)], "very offsets"),
        ([(0, 15), (16, 30)], "very offsets"),
        ([(0, 15), (14, 30)], "very offsets"),
        ([(0, 30), (30, 31)], "very offsets"),
        ([(0, 20), (20, 30), (0, 10)], "very offsets"),
    ],
)
def test_other_offsets_are_refused(spans: list[tuple[int, int]], message: str) -> None:
    group = RewriteGroup(paths=paths(OLD), files=tuple(new_file(record_span(*offsets)) for offsets in spans))
    with pytest.raises(RewriteRefused, match=message) as caught:
        done(group, HELD)
    assert caught.value.context["topic"] == "orders"
    assert caught.value.context["partition"] == 0
    assert "[" in caught.value.context["offsets"]
    assert caught.value.context["new_files"]


def test_a_record_too_few_or_another_one_is_refused() -> None:
    short = replace(record_span(0, 30), rows=29, digest=None)
    with pytest.raises(RewriteRefused, match="account for all") as caught:
        done(RewriteGroup(paths=paths(OLD), files=(new_file(short),)), HELD)
    assert (caught.value.context["old_rows"], caught.value.context["new_rows"]) == (30, 29)
    assert caught.value.context["files"] == list(paths(OLD))
    altered = replace(record_span(0, 30), digest=digest_of(range(1, 31)))
    with pytest.raises(RewriteRefused, match="other records"):
        done(RewriteGroup(paths=paths(OLD), files=(new_file(altered),)), HELD)
    lesser = NewFile(file=replace(file("s3://b/new.parquet", rows=29), digest=None), spans=(record_span(0, 30),))
    with pytest.raises(RewriteRefused, match="than its offsets say"):
        done(RewriteGroup(paths=paths(OLD), files=(lesser,)), HELD)


def test_files_that_only_others_know_cannot_be_mixed_with_ours() -> None:
    group = RewriteGroup(paths=(*paths(OLD), "s3://b/theirs.parquet"), files=(new_file(record_span(0, 30)),))
    with pytest.raises(RewriteRefused, match="only some"):
        done(group, HELD)
    assert done(RewriteGroup.of_file("s3://b/theirs.parquet", file("s3://b/x.parquet")), HELD) == ()


@pytest.mark.parametrize("why", ["erased", "retired"])
def test_records_of_foreign_files_cannot_be_left_out(why: str) -> None:
    """Their ranges would expect them, and a refill would bring them back."""
    less = new_file(record_span(0, 10, **{why: 2}))
    group = RewriteGroup(paths=("s3://b/theirs.parquet",), files=(less,), why="asked for")
    with pytest.raises(RewriteRefused, match="left out on purpose") as caught:
        done(group, HELD)
    assert caught.value.context["files"] == ["s3://b/theirs.parquet"]
    assert done(group, HELD, is_done=True) == ()
    removed = RewriteGroup(paths=("s3://b/theirs.parquet",), files=(new_file(record_span(0, 10, removed=2)),))
    assert done(removed, HELD) == (), "what others had deleted stays expected"


def test_missing_rows_stay_expected_and_their_borders_stay() -> None:
    less = HELD[0].without(left=8, erased=2, lost=0)
    group = RewriteGroup(paths=paths(OLD[:1]), files=(new_file(record_span(0, 10, removed=2)),))
    (range_,) = done(group, [less])
    assert (range_.rows, range_.expected, range_.files[0].erased) == (8, 8, 2)
    (hole,) = done(group, HELD)
    assert (hole.rows, hole.expected, hole.files[0].erased) == (8, 10, 0)
    moved = RewriteGroup(
        paths=paths(OLD[:2]), files=(new_file(record_span(0, 5, removed=2)), new_file(record_span(5, 20)))
    )
    with pytest.raises(RewriteRefused, match="keep their borders"):
        done(moved, [less, *HELD[1:]])
    assert seen(done(moved, HELD)) == [(0, 5, 1, 3, 5), (5, 20, 1, 15, 15)]
    merged = RewriteGroup(paths=paths(OLD[:2]), files=(new_file(record_span(0, 20, removed=2)),))
    assert seen(done(merged, [less, *HELD[1:]])) == [(0, 20, 1, 18, 18)]


def test_a_done_rewrite_is_never_refused() -> None:
    short = RewriteGroup(paths=paths(OLD), files=(new_file(replace(record_span(0, 30), rows=29, digest=None)),))
    (range_,) = done(short, HELD, is_done=True)
    assert (range_.rows, range_.expected) == (29, 30)


BORDERS = st.lists(st.integers(1, 59), max_size=6, unique=True).map(lambda inner: [0, *sorted(inner), 60])


@given(BORDERS, BORDERS, st.data())
def test_any_regrouping_keeps_offsets_counts_and_digests(
    before: list[int], after: list[int], data: st.DataObject
) -> None:
    old = [stored(start, end) for start, end in pairwise(before)]
    sources = [StoredRange.of(entry) for entry in old]
    spans = [record_span(start, end) for start, end in pairwise(after)]
    number = data.draw(st.integers(1, len(spans)))
    places = [data.draw(st.integers(0, number - 1)) for _ in spans]
    files = tuple(
        new_file(*subset)
        for index in range(number)
        if (subset := [item for item, at in zip(spans, places, strict=True) if at == index])
    )
    group = RewriteGroup(paths=paths(old), files=files)
    made = done(group, sources)
    assert [entry.offsets for entry in made] == list(pairwise(after))
    assert add_digests(entry.digest for entry in made) == add_digests(entry.digest for entry in sources)
    assert sum(entry.expected for entry in made) == 60
    assert len({item.id for entry in made for item in entry.files}) == len(made)
    assert Rewrite.from_json(rewrite(group).to_json()).groups == (group,)
    astray = data.draw(st.sampled_from(files))
    less = replace(astray.spans[0], rows=astray.spans[0].rows - 1)
    short = replace(astray, file=replace(astray.file, rows=astray.file.rows - 1), spans=(less, *astray.spans[1:]))
    with pytest.raises(RewriteRefused):
        done(replace(group, files=tuple(short if entry is astray else entry for entry in files)), sources)


def test_the_journal_knows_what_the_registry_does() -> None:
    first = rewrite(RewriteGroup(paths=paths(OLD[:1]), files=(new_file(record_span(0, 10, removed=2)),)))
    (path,) = first.new_paths
    merged = new_file(record_span(0, 20, removed=0, retired=0))
    merged = replace(merged, file=replace(merged.file, rows=18), spans=(replace(merged.spans[0], rows=18),))
    second = rewrite(RewriteGroup(paths=(path, *paths(OLD[1:2])), files=(merged,)))
    accepted = Acceptance(
        range_id="another registry's", left=8, erased=2, paths=paths(OLD[:1]), partition=0, start_offset=0
    )
    entries = [
        ("c", JournaledCommit(commit_id="A", ranges=tuple(OLD))),
        ("b", JournaledCommit(commit_id="B", rewrite=first)),
        ("a", JournaledCommit(commit_id="C", rewrite=second)),
    ]
    for commits in (entries, entries[::-1], entries * 2):
        source, untouched = sorted(current_ranges(commits, (accepted,)).ranges, key=lambda range_: range_.start_offset)
        assert (source.offsets, source.rows, source.expected, source.files[0].erased) == ((0, 20), 18, 18, 2)
        assert source.paths == second.new_paths
        assert untouched.paths == paths(OLD[2:])
    plain = JournaledCommit(commit_id="A", ranges=tuple(OLD)).to_json()
    assert plain["format"] == FORMAT
    for _, commit in entries[1:]:
        value = commit.to_json()
        assert value["format"] > FORMAT, "an archiver that knows one file for one only must not read it as such"
        assert (
            JournaledCommit.from_json(value).rewrite
            == replace(
                commit.rewrite,
                groups=tuple(commit.rewrite.groups),
            )
            if commit.rewrite
            else False
        )


def test_an_old_journal_is_read() -> None:
    old: DataFileInfo = OLD[0].files[0]
    made = file(f"s3://b/made-{new_id().lower()}.parquet", rows=10)
    value = {
        "format": 1,
        "commit_id": "B",
        "ranges": [],
        "rewrite": {
            "commit_id": "B",
            "reason": "reprocess",
            "schema_version": 2,
            "replacements": [{"path": old.path, "file": made.to_json(), "is_sorted": True}],
        },
    }
    commit = JournaledCommit.from_json(value)
    assert commit.to_json() == value
    (range_,) = current_ranges([("a", JournaledCommit(commit_id="A", ranges=(OLD[0],))), ("b", commit)]).ranges
    assert (range_.paths, range_.offsets, range_.files[0].commit_id) == ((made.path,), (0, 10), "B")
