"""A running group: assignments and stuck members."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fault.serving.group import Group
from tests.fault.serving.journal import Journal

ENDS = dict.fromkeys(range(4), 100)


class Noted:
    def __init__(self, folder: Path, *members: str) -> None:
        self.group = Group(
            folder / "group", bootstrap="", name="g", topic="t", protocol="range", per_second=1.0, partitions=4
        )
        self._folder = folder
        self.group.running = dict.fromkeys(members)  # type: ignore[arg-type] - no process is needed
        self.group.journals = {member: Journal(folder / f"{member}.jsonl") for member in members}

    def note(self, member: str, what: str, *more: Any) -> None:
        with (self._folder / f"{member}.jsonl").open("a") as file:
            file.write(json.dumps([what, time.monotonic_ns(), *more]) + "\n")


@pytest.fixture
def noted(tmp_path: Path) -> Noted:
    notes = Noted(tmp_path, "a", "b")
    notes.note("a", "assigned", [0, 1])
    notes.note("b", "assigned", [2, 3])
    return notes


def test_a_group_that_shares_all_partitions_is_settled(noted: Noted) -> None:
    assert noted.group.settles(0.0) is not None


def test_a_partition_that_nobody_has_is_seen(noted: Noted) -> None:
    noted.note("b", "lost", [3])
    assert noted.group.settles(0.0) is None


def test_a_partition_that_two_have_is_seen(noted: Noted) -> None:
    noted.note("b", "assigned", [1])
    assert noted.group.settles(0.0) is None


def test_idle_member_is_seen_if_there_are_enough_partitions(noted: Noted) -> None:
    noted.note("b", "revoked", [2, 3])
    noted.note("a", "assigned", [2, 3])
    assert noted.group.settles(0.0) is None


def test_a_suspended_member_is_not_counted_on(noted: Noted) -> None:
    noted.group.paused.add("b")
    assert noted.group.settles(0.0) is None
    noted.note("a", "assigned", [2, 3])
    assert noted.group.settles(0.0) is not None


def test_a_stuck_member_is_named(noted: Noted) -> None:
    noted.note("a", "got", 0, 0, 9)
    noted.note("b", "got", 2, 0, 9)
    assert noted.group.gets_records(ENDS, 0.0) == ["a", "b"], "what came before doesn't count"


def test_member_that_has_read_everything_is_not_stuck(noted: Noted) -> None:
    for partition in (0, 1, 2):
        noted.note("a" if partition < 2 else "b", "got", partition, 0, 99)
    assert noted.group.gets_records(ENDS, 0.0) == ["b"]
    noted.note("b", "got", 3, 0, 99)
    assert noted.group.gets_records(ENDS, 0.0) == []


def test_the_end_counts_as_reached_when_each_partition_is_read(noted: Noted) -> None:
    for partition in range(3):
        noted.note("a", "got", partition, 0, 99)
    noted.note("b", "got", 3, 0, 98)
    assert not noted.group.has_reached(ENDS, 0.0)
    noted.note("b", "got", 3, 99, 99)
    assert noted.group.has_reached(ENDS, 0.0)
