"""The tables of docs/engines/pruning.md are of the last `make interop RECORD=1`."""

from __future__ import annotations

import pytest

from tests.support.archive.engine_findings import ENGINES
from tests.support.pruning.layout import DataFile, Touched, touched
from tests.support.pruning.recorded import PAGE, kept, page
from tests.support.storage.counting_proxy import Read

K = 1_000
FIRST = {"a": (10 * K, 50 * K), "b": (60 * K, 400 * K)}
SECOND = {"a": (410 * K, 450 * K), "b": (460 * K, 900 * K)}
ONE = DataFile(path="/b/one", size=1_000 * K, groups=(FIRST, SECOND))
TWO = DataFile(path="/b/two", size=500 * K, groups=(FIRST,))


def test_the_page_shows_what_was_found() -> None:
    """After a change of either: `make interop RECORD=1`."""
    assert page(PAGE.read_text(encoding="utf-8"), kept()) == PAGE.read_text(encoding="utf-8")


def test_every_engine_was_asked_everything() -> None:
    assert all(set(row) == {"needed", *ENGINES} for row in kept()["questions"].values())


def test_no_engine_reads_less_than_the_answer_needs() -> None:
    for row in kept()["questions"].values():
        assert all(row[name]["groups"] >= row["needed"]["groups"] for name in ENGINES)
        assert all(row[name]["files"] >= row["needed"]["files"] for name in ENGINES)


@pytest.mark.parametrize(
    ("reads", "files", "groups", "kilobytes"),
    [
        ([], 0, 0, 0),
        ([("/b/other", 0, 1_000)], 0, 0, 0),
        ([("/b/one", 900, 1_000)], 1, 0, 100),
        ([("/b/one", 420, 1_000)], 1, 0, 580),
        ([("/b/one", 50, 60)], 1, 0, 10),
        ([("/b/one", 10, 11)], 1, 1, 1),
        ([("/b/one", 49, 411)], 1, 2, 362),
        ([("/b/one", 100, 200), ("/b/one", 150, 300)], 1, 0, 200),
        ([("/b/one", 0, 1_000), ("/b/two", 480, 500), ("/b/two", 20, 30)], 2, 3, 1_030),
    ],
)
def test_what_was_read_is_counted_by_row_groups(
    reads: list[tuple[str, int, int]], files: int, groups: int, kilobytes: int
) -> None:
    """Bytes that come with the footer, and repeated ones, don't count for column `a`."""
    sizes = {file.path: file.size for file in (ONE, TWO)}
    got = [Read(path, start * K, end * K, sizes.get(path, end * K)) for path, start, end in reads]
    assert touched((ONE, TWO), got, ["a"]) == Touched(files=files, groups=groups, kilobytes=kilobytes)
