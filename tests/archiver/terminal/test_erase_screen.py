"""The screen of an erasure."""

from __future__ import annotations

import io

import pytest

from archiver.terminal.console import TextConsole
from archiver.terminal.erase_screen import EraseScreen
from archiver.upkeep.erase.report import EraseFinished, EraseReport


def seen(report: EraseReport) -> str:
    out = io.StringIO()
    with EraseScreen(TextConsole(file=out)) as screen:
        screen(EraseFinished(report=report))
    return out.getvalue()


@pytest.mark.parametrize("dry_run", [False, True])
def test_unjudged_records_are_named_with_offsets(dry_run: bool) -> None:
    spans = (*((0, 10 * n, 10 * n + 1) for n in range(7)), (3, 5, 1_005))
    report = EraseReport(topic="orders", table="kafka.orders", dry_run=dry_run, unjudged=spans)
    assert not report.succeeded
    lines = seen(report).splitlines()
    assert "1,007 records can't be judged by the condition's columns and may be among those meant" in lines[1]
    assert "archiver reprocess orders --all" in lines[1]
    assert lines[2:4] == [
        "  partition 0: 7 records, offsets 0, 10, 20, 30, 40, …",
        "  partition 3: 1,000 records, offsets 5-1004",
    ]


@pytest.mark.parametrize(("dry_run", "verb"), [(True, "would be erased"), (False, "erased")])
def test_erased_metadata_is_counted(dry_run: bool, verb: str) -> None:
    report = EraseReport(topic="orders", table="kafka.orders", dry_run=dry_run, metadata={"a", "b"})
    assert f"0 rows in 0 files {verb}, with 2 entries of metadata" in seen(report)


def test_what_stays_on_this_machine_and_in_manifests_is_named() -> None:
    columns = ("key.id", "val.region")
    report = EraseReport(
        topic="orders", table="t", dry_run=False, local=("/spool/kept/a.parquet",), partition_columns=columns
    )
    assert "others that are nowhere else: /spool/kept/a.parquet." in seen(report)
    assert "partitions" not in seen(report), "nothing went"
    report.commits.append("C")
    assert "files are in partitions by key.id, val.region: manifests name those that went" in seen(report)


def test_an_erasure_that_ended_without_knowing_all_is_named_once() -> None:
    report = EraseReport(topic="orders", table="kafka.orders", dry_run=False, erasure="A", doubtful=("A", "B"))
    assert not report.succeeded
    text = seen(report)
    assert "erasure B left records that it couldn't judge: run it again with its condition when they are" in text
    assert "erasure A left" not in text


def test_a_build_of_the_index_is_named() -> None:
    report = EraseReport(topic="orders", table="kafka.orders", dry_run=False, rewriters=("index-1",))
    assert not report.succeeded
    assert "not finished: a build of the index runs" in seen(report)


def test_a_search_beside_a_build_is_to_be_repeated() -> None:
    """`--finish` alone would keep terms that the build read before the records had left."""
    report = EraseReport(topic="orders", table="kafka.orders", dry_run=False, rewriters=("index-1",), unfinished=("A",))
    assert "Run the same command again" not in seen(report)
    report.is_searched_beside_builds = True
    assert "Run the same command again" in seen(report)
