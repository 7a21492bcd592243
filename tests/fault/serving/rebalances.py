"""Rounds of joining, leaving, dying and suspended members."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.fault.serving.group import Group
from tests.fault.serving.scene import Scene
from tests.support.servers.serve_nodes import Nodes
from tests.support.servers.stack import Stack, unique

PARTITIONS = 24
RECORD_BYTES = 60
SERVE = {"refresh": "1s", "group_heartbeat": "1s", "group_session": "4s"}
"""librdkafka waits for the answer to a heartbeat no longer than for the next one, and then reconnects."""
SECONDS_A_ROUND = 5.0
LONG_PAUSE_S = 5.0
"""Longer than any session."""
PATIENCE_S = 60.0
"""How long a group may take until all members have partitions and get records."""
FEWEST_OF_ALL = 0.8


@dataclass(slots=True)
class Course:
    protocol: str
    rounds: Counter[str] = field(default_factory=Counter)
    settled: list[float] = field(default_factory=list)
    """Seconds until all had partitions and got records, if that was waited for."""
    wrong: list[str] = field(default_factory=list)
    verdict: dict[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> dict[str, Any]:
        return {
            "protocol": self.protocol,
            "rounds": dict(sorted(self.rounds.items())),
            "waited_for": len(self.settled),
            "settled_s": {
                "median": round(statistics.median(self.settled), 2) if self.settled else None,
                "most": round(max(self.settled), 2) if self.settled else None,
            },
            **self.verdict,
            "wrong": [*self.wrong, *self.verdict.get("wrong", [])],
        }


class _Rounds:
    def __init__(self, group: Group, scene: Scene, course: Course, members: int, noise: Random) -> None:
        self._group, self._scene, self._course = group, scene, course
        self._members, self._noise = members, noise

    def play(self, rounds: int) -> None:
        self._group.begin_at_zero()
        for _ in range(self._members):
            self._group.join()
        self._settle("the beginning")
        for number in range(rounds):
            what = self._change()
            self._course.rounds[what] += 1
            if self._noise.random() < 0.5:
                self._settle(f"round {number}: {what}")
            else:  # the next comes into the middle of it
                time.sleep(self._noise.uniform(0.0, 1.5))
        self._group.drain()
        self._settle("the end")
        if not self._group.has_reached(self._scene.ends, 2 * PATIENCE_S):
            self._course.wrong.append("the end was never reached")
        self._course.verdict = self._group.judged(self._scene.ends).summary

    def _change(self) -> str:
        group, noise = self._group, self._noise
        members = group.members
        is_few = len(members) <= self._members * FEWEST_OF_ALL
        if len(members) < self._members and (is_few or noise.random() < 0.5):
            group.join()
            return "join"
        what = noise.choice(("leave", "kill", "pause", "long pause"))
        chosen = noise.choice(members)
        match what:
            case "leave":
                group.leave(chosen)
            case "kill":
                group.kill(chosen)
            case "pause":
                group.pause(chosen)
                time.sleep(noise.uniform(0.1, 1.5))
                group.go_on(chosen)
            case _:
                group.pause(chosen)
                time.sleep(LONG_PAUSE_S)
                self._settle("a member was suspended")
                group.go_on(chosen)
        return what

    def _settle(self, when: str) -> None:
        began = time.monotonic()
        if self._group.settles(PATIENCE_S) is None:
            self._course.wrong.append(f"{when}: partitions weren't shared: {self._group.shares()}")
            return
        if waiting := self._group.gets_records(self._scene.ends, PATIENCE_S):
            self._course.wrong.append(f"{when}: {waiting} got no more records")
            return
        self._course.settled.append(time.monotonic() - began)


def rebalances(
    stack: Stack,
    folder: Path,
    *,
    minutes: float,
    rounds: int,
    members: int,
    groups: int,
    protocols: Sequence[str],
    seed: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Play at most fifty rounds on each group, all groups at once."""
    a_group = min(50, max(1, rounds // groups))
    per_second = 50.0
    records = max(4_800, int(per_second * members * a_group * SECONDS_A_ROUND))
    scene = Scene(stack, partitions=PARTITIONS, records=records, size=RECORD_BYTES, serve=SERVE)
    until = time.monotonic() + 60 * minutes
    courses: list[Course] = []

    def play(number: int) -> None:
        if time.monotonic() > until:
            return
        course = Course(protocols[number % len(protocols)])
        courses.append(course)
        with Group(
            folder / f"group-{number}",
            bootstrap=nodes.bootstrap,
            name=unique("group"),
            topic=scene.topic,
            protocol=course.protocol,
            per_second=per_second,
            partitions=PARTITIONS,
        ) as group:
            _Rounds(group, scene, course, members, Random(f"{seed} {number}")).play(a_group)
        say(f"{number}: {course.summary}")

    with Nodes(scene.config, 1, log=folder / "server.log") as nodes, ThreadPoolExecutor(groups) as pool:
        began = time.monotonic()
        list(pool.map(play, range(-(-rounds // a_group))))
    return summary(courses, members=members, seconds=time.monotonic() - began)


def summary(courses: list[Course], *, members: int, seconds: float) -> dict[str, Any]:
    summaries = [course.summary for course in courses]
    settled = [moment for course in courses for moment in course.settled]
    changes = sum((course.rounds for course in courses), Counter())
    return {
        "rounds": sum(changes.values()),
        "changes": dict(sorted(changes.items())),
        "members": members,
        "seconds": round(seconds),
        "settled_s": {"median": round(statistics.median(settled), 2), "most": round(max(settled), 2)},
        **{key: sum(entry[key] for entry in summaries) for key in ("delivered", "again", "assignments", "commits")},
        "wrong": sum(len(entry["wrong"]) for entry in summaries),
        "groups": summaries,
    }
