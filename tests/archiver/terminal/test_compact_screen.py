"""The report of a compaction."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from archiver.archive.table_files import TableFile, ValueBounds
from archiver.errors import StorageDenied
from archiver.terminal.compact_screen import CompactNotes, CompactScreen
from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import JsonLines
from archiver.upkeep.compact.choice import FileGroup, Reason, SourceFile
from archiver.upkeep.compact.report import (
    CompactFinished,
    CompactReport,
    GroupFailed,
    GroupsCommitted,
    Merged,
    TopicCompaction,
)

DONE = Merged(files_before=12, files_after=1, bytes_before=12_000_000, bytes_after=9_000_000, rows=4_000, removed=7)
GROUP = FileGroup(
    files=tuple(
        SourceFile(
            file=TableFile(
                path=f"s3://b/{number}",
                format="parquet",
                rows=9,
                size_bytes=1_000_000,
                spec_id=0,
                partition_values=(1,),
                partitions=ValueBounds(0, 0),
                offsets=ValueBounds(number, number),
                latest=None,
            )
        )
        for number in range(12)
    ),
    reasons=frozenset({Reason.SMALL}),
)


def report(*, dry_run: bool, failed: bool = False) -> CompactReport:
    topic = TopicCompaction(topic="orders", table="kafka.orders", files=40, target_bytes=100, planned=(GROUP,))
    if not dry_run:
        topic.done = DONE
        topic.commits.append("01C")
    if failed:
        topic.failures["s3://b/1", "s3://b/2"] = StorageDenied("no right", file="s3://b/1")
    return CompactReport(topics=(topic,), dry_run=dry_run, seconds=1.5)


def shown(done: CompactReport) -> str:
    console = TextConsole(file=io.StringIO(), width=200)
    CompactScreen(console)(CompactFinished(report=done))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_dry_run_says_what_would_be_done() -> None:
    text = shown(report(dry_run=True))
    assert "12 files with 12.0 MB would become about 1; nothing was changed" in text
    assert "1 small" in text


def test_a_run_says_what_became_of_the_files() -> None:
    text = shown(report(dry_run=False))
    assert "12 files became 1, 25.00 % smaller, 1.5 s" in text
    assert "12.0 MB to 9.0 MB" in text


def test_files_that_go_to_other_partitions_are_told() -> None:
    planned = report(dry_run=True)
    (topic,) = planned.topics
    topic.planned, topic.partitioned_by = (replace(GROUP, reasons=frozenset({Reason.SPEC})), GROUP), "day(30)"
    text = shown(planned)
    assert "1 small, 1 spec" in text
    assert "orders: 12 files with 12.0 MB would move to partitions by day(30); they become more files" in text
    done = report(dry_run=False)
    done.topics[0].done, done.topics[0].partitioned_by = replace(DONE, moved=8), "day(30)"
    assert "orders: 8 files moved to partitions by day(30)\n" in shown(done)


def test_a_failed_group_is_named() -> None:
    console = TextConsole(file=io.StringIO(), width=200)
    error = StorageDenied("no right", file="s3://b/1")
    screen = CompactScreen(console)
    screen(GroupFailed(topic="orders", paths=("s3://b/1", "s3://b/2"), error=error, partition=3))
    screen(GroupFailed(topic="orders", paths=("s3://b/1",), error=error))
    screen(GroupFailed(topic="orders", paths=(), error=error))
    assert isinstance(console.file, io.StringIO)
    assert [line for line in console.file.getvalue().splitlines() if "StorageDenied" in line] == [
        "orders, partition 3: s3://b/1 and 1 more file: StorageDenied: no right",
        "orders: s3://b/1: StorageDenied: no right",
        "orders: StorageDenied: no right",
    ]
    assert not report(dry_run=False, failed=True).succeeded


def test_pauses_are_told_in_a_line_for_each_commit() -> None:
    console = TextConsole(file=io.StringIO(), width=200)
    with CompactNotes(console) as notes:
        notes(GroupsCommitted(topic="orders", commit_id="01C", done=DONE))
        notes(CompactFinished(report=report(dry_run=False)))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "orders: 12 files became 1, 12.0 MB to 9.0 MB\n"


def test_machines_get_a_line_for_each_commit_and_topic(capsys: pytest.CaptureFixture[str]) -> None:
    lines = JsonLines(CompactScreen.lines)
    lines(GroupsCommitted(topic="orders", commit_id="01C", done=DONE))
    lines(CompactFinished(report=report(dry_run=False, failed=True)))
    committed, topic, finished = map(json.loads, capsys.readouterr().out.splitlines())
    assert (committed["event"], committed["files_before"], committed["files_after"]) == ("compacted_files", 12, 1)
    assert (topic["event"], topic["removed_records"], topic["commits"]) == ("compacted", 7, ["01C"])
    assert topic["planned"] == {
        "groups": 1,
        "files": 12,
        "size_bytes": 12_000_000,
        "expected_files": 1,
        "reasons": {"small": 1},
        "moved_files": 0,
    }
    assert (topic["partitioned_by"], topic["moved_files"]) == (None, 0)
    assert topic["failures"][0]["files"] == ["s3://b/1", "s3://b/2"]
    assert (finished["event"], finished["succeeded"]) == ("finished", False)


def test_machines_are_told_nothing_of_a_pause_without_a_commit(capsys: pytest.CaptureFixture[str]) -> None:
    JsonLines(CompactNotes.lines)(CompactFinished(report=report(dry_run=False)))
    assert capsys.readouterr().out == ""


def test_small_files_that_stay_have_a_reason() -> None:
    topic = TopicCompaction(
        topic="orders", table="kafka.orders", files=240, small_files=240, min_files=5, fewer_merge=True
    )
    text = " ".join(shown(CompactReport(topics=(topic,), dry_run=False, seconds=1.5)).split())
    assert "nothing to compact, 1.5 s" in text
    assert "orders: 240 of 240 files are small, but no partition of the table has 5 of one Kafka partition" in text
    assert "--min-files 2 merges fewer" in text
    dry = shown(CompactReport(topics=(topic,), dry_run=True, seconds=1.5))
    assert "but no partition of the table has 5 of one Kafka partition" in " ".join(dry.split())
    alone = replace(topic, fewer_merge=False)
    text = " ".join(shown(CompactReport(topics=(alone,), dry_run=False, seconds=1.5)).split())
    assert "has two of one Kafka partition beside each other: nothing can be merged" in text
