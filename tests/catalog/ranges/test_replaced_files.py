"""Replaced files by the journal."""

from __future__ import annotations

from dataclasses import replace

from catalog.current_ranges import current_ranges
from catalog.journal_entries import JournaledCommit
from catalog.model import TranslatedRange, new_id
from catalog.ranges.replaced_files import ReplacedFile
from catalog.ranges.rewrite import NewFile, RecordSpan, Rewrite, RewriteGroup
from tests.support.catalog.memory import file as data_file
from tests.support.catalog.memory import span

FIRST, SECOND = span(0, 0, 10), span(0, 10, 20)
ARCHIVED = ("a", JournaledCommit(commit_id="A", ranges=(FIRST, SECOND)))


def replaced(*commits: tuple[str, JournaledCommit]) -> list[tuple[str, int, int, str | None, str]]:
    files = current_ranges([ARCHIVED, *commits], keeps_replaced=True).replaced
    assert current_ranges([ARCHIVED, *commits]).replaced == ()
    return [
        (file.path, file.range.start_offset, file.range.end_offset, file.replaced_by, file.reason) for file in files
    ]


def path(stored: TranslatedRange) -> str:
    return stored.files[0].path


def merged(*, removed: int = 0, paths: tuple[str, ...] = (), recorded: tuple[str, ...] = ()) -> RewriteGroup:
    spans = (RecordSpan(partition=0, start_offset=0, end_offset=20, rows=20 - removed, removed=removed),)
    new = NewFile(file=data_file(f"file:///new/{new_id().lower()}.parquet", rows=20 - removed), spans=spans)
    return RewriteGroup(paths=paths or (path(FIRST), path(SECOND)), files=(new,), recorded=recorded, why="asked")


def commit(group: RewriteGroup, reason: str = "compact") -> tuple[str, JournaledCommit]:
    return "b", JournaledCommit(
        commit_id="B", rewrite=Rewrite(commit_id="B", reason=reason, schema_version=1, groups=(group,))
    )


def test_rewrite_replaces_the_files_of_its_ranges() -> None:
    reason = "erase: commit B: asked"
    assert replaced(commit(merged(removed=2), "erase")) == [
        (path(FIRST), 0, 10, "B", reason),
        (path(SECOND), 10, 20, "B", reason),
    ]
    assert replaced() == []


def test_replaced_files_keep_what_they_had() -> None:
    (first, _) = current_ranges([ARCHIVED, commit(merged())], keeps_replaced=True).replaced
    (kept,) = first.range.files
    assert (kept.file, kept.rows, kept.expected, kept.commit_id) == (FIRST.files[0], 10, 10, "A")


def test_files_of_other_engines_are_known_by_their_offsets() -> None:
    group = merged(paths=("file:///other.parquet",), recorded=(path(FIRST), path(SECOND)))
    files = replaced(commit(group))
    assert files[-1] == ("file:///other.parquet", 0, 20, "B", "compact: commit B")
    assert [name for name, *_ in files] == [path(FIRST), path(SECOND), "file:///other.parquet"]


def test_files_of_unknown_ranges_with_deleted_rows_are_not_known() -> None:
    """These rows may be nowhere else, and known files may be deleted."""
    group = merged(removed=2, paths=("file:///other.parquet",))
    assert replaced(commit(group)) == []
    assert replaced(commit(merged(paths=("file:///other.parquet",))))[0][0] == "file:///other.parquet"


def test_retirement_replaces_files_below_the_first_offset() -> None:
    rewrite = Rewrite(commit_id="B", reason="expire", schema_version=1, groups=(), first_offsets={0: 10})
    assert replaced(("b", JournaledCommit(commit_id="B", rewrite=rewrite))) == [
        (path(FIRST), 0, 10, "B", "expire: commit B")
    ]


def test_refill_replaces_ranges_that_came_back_in_other_files() -> None:
    again = (span(0, 10, 14), span(0, 14, 20))
    assert replaced(("b", JournaledCommit(commit_id="B", ranges=again))) == [
        (path(SECOND), 10, 20, "B", "refill: commit B")
    ]


def test_only_named_files_of_a_range_are_replaced() -> None:
    two = replace(FIRST, files=(FIRST.files[0], data_file("file:///second.parquet")))
    (stored,) = current_ranges([("a", JournaledCommit(commit_id="A", ranges=(two,)))]).ranges
    second = ReplacedFile.of_range(
        stored, paths=["file:///second.parquet"], replaced_by="B", reason="compact: commit B"
    )
    assert [file.path for file in second] == ["file:///second.parquet"]
    assert (
        len(
            {
                number.other_id
                for number in ReplacedFile.of_range(stored, paths=stored.paths, replaced_by="B", reason="")
            }
        )
        == 2
    )
