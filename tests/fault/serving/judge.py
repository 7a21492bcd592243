"""Judges members' journals: nothing lost, only uncommitted records repeated.

A new owner begins at the last commit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.fault.serving.journal import lines_of

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Commit:
    sent: int
    heard: int
    offset: int


@dataclass(slots=True)
class Verdict:
    records: int = 0
    delivered: int = 0
    again: int = 0
    """Delivered more than once, as may be after a member died."""
    commits: int = 0
    refused: int = 0
    assignments: int = 0
    longest_silence: float = 0.0
    """Seconds in which no member got a record, while there were more."""
    wrong: list[str] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "delivered": self.delivered,
            "again": self.again,
            "assignments": self.assignments,
            "commits": self.commits,
            "commits_refused": self.refused,
            "longest_silence_s": round(self.longest_silence, 1),
            "wrong": self.wrong,
        }


class _Commits:
    def __init__(self, acknowledged: Iterable[Commit], sent: Iterable[tuple[int, int]]) -> None:
        self._acknowledged = _Highest((commit.heard, commit.offset) for commit in acknowledged)
        self._sent = _Highest(sent)

    def least(self, at: int) -> int:
        """Return the lowest possible offset, by acknowledged commits."""
        return self._acknowledged.before(at)

    def most(self, at: int) -> int:
        """Return the highest possible offset, by sent commits."""
        return self._sent.before(at)


class _Highest:
    def __init__(self, told: Iterable[tuple[int, int]]) -> None:
        self._times, self._highest = [], [0]
        for at, offset in sorted(told):
            self._times.append(at)
            self._highest.append(max(offset, self._highest[-1]))

    def before(self, at: int) -> int:
        return self._highest[bisect_left(self._times, at)]


def judge(journals: Sequence[Path], ends: Mapping[int, int]) -> Verdict:
    """`ends` are the numbers of records by partition."""
    notes = {path.name: list(lines_of(path)) for path in journals}
    verdict = Verdict(records=sum(ends.values()))
    commits = _commits(notes, verdict)
    times = []
    for name, lines in notes.items():
        _follow(name, lines, commits, verdict)
        times += [(line[1], line[4] - line[3] + 1) for line in lines if line[0] == "got"]
        verdict.wrong += [f"{name}: {line[2:]} isn't the record" for line in lines if line[0] == "wrong"]
    _cover(notes, ends, verdict)
    heard = sorted(at for at, _ in times)
    verdict.longest_silence = max((b - a for a, b in pairwise(heard)), default=0) / 1e9
    return verdict


def _commits(notes: Mapping[str, list[list[Any]]], verdict: Verdict) -> Mapping[int, _Commits]:
    acknowledged: dict[int, list[tuple[str, Commit]]] = defaultdict(list)
    sent: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for name, lines in notes.items():
        since = 0
        for line in lines:
            match line:
                case ["committing", at, offsets]:
                    since = at
                    for partition, offset in offsets.items():
                        sent[int(partition)].append((at, offset))
                case ["committed", at, offsets]:
                    verdict.commits += 1
                    for partition, offset in offsets.items():
                        acknowledged[int(partition)].append((name, Commit(since, at, offset)))
                case ["refused", *_]:
                    verdict.refused += 1
    by_partition = {
        number: _Commits([commit for _, commit in acknowledged[number]], sent[number])
        for number in sorted({*sent, *acknowledged})
    }
    for partition, commits in by_partition.items():
        verdict.wrong += _went_back(partition, acknowledged[partition], commits)
    return by_partition


def _went_back(partition: int, acknowledged: Iterable[tuple[str, Commit]], known: _Commits) -> Iterator[str]:
    for name, commit in acknowledged:
        least = known.least(commit.sent)
        if least > commit.offset:
            yield f"{name}: a commit of {partition} went back to {commit.offset}, after one of {least}"


def _follow(name: str, lines: list[list[Any]], commits: Mapping[int, _Commits], verdict: Verdict) -> None:
    since: dict[int, int] = {}
    following: dict[int, int] = {}
    none = _Commits([], [])
    for line in lines:
        match line:
            case ["assigned", at, places]:
                verdict.assignments += 1
                since |= dict.fromkeys(places, at)
                for number in places:
                    following.pop(number, None)
            case ["revoked" | "lost", _, places]:
                for number in places:
                    since.pop(number, None)
            case ["got", at, partition, first, last]:
                if partition not in since:
                    trouble: str | None = f"got {partition} at {first} without having it"
                elif partition in following:
                    trouble = _jumped(partition, first, following[partition])
                else:
                    trouble = _began(partition, first, commits.get(partition, none), since[partition], at)
                if trouble is not None:
                    verdict.wrong.append(f"{name}: {trouble}")
                following[partition] = last + 1


def _jumped(partition: int, first: int, following: int) -> str | None:
    how = "skipped" if first > following else "got again"
    return None if first == following else f"{how} records of {partition}: {first} after {following - 1}"


def _began(partition: int, first: int, known: _Commits, since: int, at: int) -> str | None:
    if first < known.least(since):
        return f"began {partition} at {first}, though {known.least(since)} was committed"
    return f"began {partition} at {first}, though nobody had come so far" if first > known.most(at) else None


def _cover(notes: Mapping[str, list[list[Any]]], ends: Mapping[int, int], verdict: Verdict) -> None:
    ranges: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for lines in notes.values():
        for line in lines:
            if line[0] == "got":
                ranges[line[2]].append((line[3], line[4]))
    distinct = 0
    for partition, end in ends.items():
        at = 0
        for first, last in sorted(ranges.pop(partition, [])):
            verdict.delivered += last - first + 1
            if first > at:
                verdict.wrong.append(f"lost {at} to {first - 1} of {partition}")
            distinct += max(0, last + 1 - max(first, at))
            at = max(at, last + 1)
        if at < end:
            verdict.wrong.append(f"lost {at} to {end - 1} of {partition}")
        if at > end:
            verdict.wrong.append(f"got {end} to {at - 1} of {partition}, which aren't there")
    verdict.wrong += [f"got records of {range_}, which isn't there" for range_ in ranges]
    verdict.again = verdict.delivered - distinct
