"""The judge of members' journals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.fault.serving.judge import Verdict, judge

SECOND = 1_000_000_000
Line: TypeAlias = list[Any]
Notes: TypeAlias = dict[str, list[Line]]
Change: TypeAlias = Callable[[Notes], object]


def right() -> Notes:
    return {
        "a": [
            ["began", 0],
            ["assigned", 1 * SECOND, [0]],
            ["got", 2 * SECOND, 0, 0, 19],
            ["committing", 3 * SECOND, {"0": 20}],
            ["committed", 4 * SECOND, {"0": 20}],
            ["got", 5 * SECOND, 0, 20, 29],
        ],
        "b": [
            ["began", 0],
            ["assigned", 8 * SECOND, [0]],
            ["got", 9 * SECOND, 0, 20, 59],
            ["committing", 10 * SECOND, {"0": 60}],
            ["committed", 11 * SECOND, {"0": 60}],
            ["revoked", 12 * SECOND, [0]],
            ["ended", 13 * SECOND],
        ],
        "c": [
            ["began", 0],
            ["assigned", 1 * SECOND, [1]],
            ["got", 2 * SECOND, 1, 0, 9],
            ["committing", 3 * SECOND, {"1": 10}],
            ["refused", 4 * SECOND, {"1": 10}, "_TIMED_OUT"],
            ["got", 5 * SECOND, 1, 10, 19],
            ["committing", 6 * SECOND, {"1": 20}],
            ["committed", 7 * SECOND, {"1": 20}],
            ["revoked", 8 * SECOND, [1]],
            ["assigned", 9 * SECOND, [1]],
            ["got", 10 * SECOND, 1, 20, 39],
        ],
    }


ENDS = {0: 60, 1: 40}


def judged(folder: Path, notes: Notes) -> Verdict:
    paths = []
    for name, lines in notes.items():
        paths.append(folder / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(line) + "\n" for line in lines))
    return judge(paths, ENDS)


def test_a_right_course_has_no_fault(tmp_path: Path) -> None:
    verdict = judged(tmp_path, right())
    assert verdict.wrong == []
    assert (verdict.records, verdict.delivered, verdict.again) == (100, 110, 10)
    assert (verdict.commits, verdict.refused, verdict.assignments) == (3, 1, 4)
    assert verdict.longest_silence == 4.0


def test_a_line_that_a_kill_cut_short_does_not_count(tmp_path: Path) -> None:
    notes = right()
    verdict = judged(tmp_path, notes)
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write('["got", 6000000000, 0, 30, 9')
    assert judge([tmp_path / f"{note}.jsonl" for note in notes], ENDS) == verdict


def test_a_commit_that_nobody_heard_of_may_count_and_may_not(tmp_path: Path) -> None:
    notes = right()
    notes["a"].append(["committing", 6 * SECOND, {"0": 30}])
    assert judged(tmp_path, notes).wrong == []
    notes["b"][2][3] = 30
    assert judged(tmp_path, notes).wrong == []


def test_member_unaware_of_a_commit_may_begin_before_it(tmp_path: Path) -> None:
    notes = right()
    notes["a"] += [["committing", 6 * SECOND, {"0": 30}], ["committed", 9 * SECOND, {"0": 30}]]
    assert judged(tmp_path, notes).wrong == []


SEEDED: list[tuple[str, Change, list[str]]] = [
    (
        "records in the middle are lost",
        lambda it: it["b"][2].__setitem__(3, 35),
        ["b.jsonl: began 0 at 35, though nobody had come so far", "lost 30 to 34 of 0"],
    ),
    ("records at the end are lost", lambda it: it["c"].pop(), ["lost 20 to 39 of 1"]),
    (
        "the first records are lost",
        lambda it: it["c"][2].__setitem__(3, 1),
        ["c.jsonl: began 1 at 1, though nobody had come so far", "lost 0 to 0 of 1"],
    ),
    (
        "a member skips records",
        lambda it: it["c"][5].__setitem__(3, 11),
        ["c.jsonl: skipped records of 1: 11 after 9", "lost 10 to 10 of 1"],
    ),
    (
        "a member gets records again without a rebalance",
        lambda it: it["c"][5].__setitem__(3, 9),
        ["c.jsonl: got again records of 1: 9 after 9"],
    ),
    (
        "a position goes back to 0",
        lambda it: it["b"][2].__setitem__(3, 0),
        ["b.jsonl: began 0 at 0, though 20 was committed"],
    ),
    (
        "a position goes back a little behind what was committed",
        lambda it: it["b"][2].__setitem__(3, 19),
        ["b.jsonl: began 0 at 19, though 20 was committed"],
    ),
    (
        "the same member's position goes back when it gets a partition again",
        lambda it: it["c"][-1].__setitem__(3, 10),
        ["c.jsonl: began 1 at 10, though 20 was committed"],
    ),
    (
        "a commit goes back",
        lambda it: it["b"].__setitem__(slice(3, 5), late_commit(12)),
        ["b.jsonl: a commit of 0 went back to 12, after one of 20"],
    ),
    (
        "a whole partition is never read",
        lambda it: it.pop("c"),
        ["lost 0 to 39 of 1"],
    ),
    (
        "a member reads what isn't its own",
        lambda it: it["c"].pop(1),
        ["c.jsonl: got 1 at 0 without having it", "c.jsonl: got 1 at 10 without having it"],
    ),
    (
        "a member reads on after it gave a partition up",
        lambda it: it["c"].pop(9),
        ["c.jsonl: got 1 at 20 without having it"],
    ),
    (
        "a member reads on after it lost a partition",
        lambda it: it["a"].insert(5, ["lost", 4 * SECOND, [0]]),
        ["a.jsonl: got 0 at 20 without having it"],
    ),
    (
        "a record that isn't there is read",
        lambda it: it["c"][-1].__setitem__(4, 40),
        ["got 40 to 40 of 1, which aren't there"],
    ),
    (
        "a partition that isn't there is read",
        lambda it: it["a"].insert(2, ["got", 2 * SECOND, 7, 0, 1]),
        ["a.jsonl: got 7 at 0 without having it", "got records of 7, which isn't there"],
    ),
    (
        "a record is another one",
        lambda it: it["a"].insert(2, ["wrong", 2 * SECOND, 0, 3, "0-4 "]),
        ["a.jsonl: [0, 3, '0-4 '] isn't the record"],
    ),
]


def late_commit(offset: int) -> list[Line]:
    return [["committing", 10 * SECOND, {"0": offset}], ["committed", 11 * SECOND, {"0": offset}]]


@pytest.mark.parametrize(("change", "told"), [case[1:] for case in SEEDED], ids=[case[0] for case in SEEDED])
def test_each_fault_is_found(tmp_path: Path, change: Change, told: list[str]) -> None:
    notes = right()
    change(notes)
    assert judged(tmp_path, notes).wrong == told


def test_a_group_that_is_silent_for_long_is_seen(tmp_path: Path) -> None:
    notes = right()
    notes["c"][-1][1] = 100 * SECOND
    assert judged(tmp_path, notes).longest_silence == 91.0
