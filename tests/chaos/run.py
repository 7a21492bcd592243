"""Plays the histories of a seed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.chaos.acts import Act, Plan
from tests.chaos.judge import Violation
from tests.chaos.known import finding_in
from tests.chaos.player import HistoryPlayer
from tests.chaos.processes import KILLED
from tests.chaos.scene import Scene
from tests.fault.soak.results import Results
from tests.fault.soak.run import ground
from tests.fault.soak.scene import Ground
from tests.support.servers.stack import Stack

RIGHT = "right"
WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResult:
    number: int
    plan: Plan
    ended: str
    acts: int
    records: int
    seconds: float
    violation: str = ""
    notes: tuple[str, ...] = ()

    @property
    def killed(self) -> int:
        return sum(KILLED in note for note in self.notes)

    def to_json(self) -> dict[str, Any]:
        details = {"violation": self.violation, "notes": list(self.notes)} if self.violation else {}
        return {
            "number": self.number,
            "ended": self.ended,
            "acts": self.acts,
            "records": self.records,
            "seconds": round(self.seconds, 1),
            "killed": self.killed,
            **details,
        }

    def __str__(self) -> str:
        killed = f", {self.killed} commands killed" if self.killed else ""
        line = (
            f"{self.number:4} {self.seconds:5.1f} s {self.acts:3} acts {self.records:5} records{killed}: {self.ended}"
        )
        return line if self.ended == RIGHT else f"{line}\n     {self.violation}"


class HistoryResults(Results):
    def totals(self) -> dict[str, Any]:
        return {
            "histories": len(self.rounds),
            "acts": sum(round_["acts"] for round_ in self.rounds),
            "records": sum(round_["records"] for round_ in self.rounds),
            "wrong": sum(round_["ended"] == WRONG for round_ in self.rounds),
        }

    def table(self) -> str:
        ends = Counter(round_["ended"] for round_ in self.rounds)
        rows = [f"| {end} | {count} |" for end, count in ends.most_common()]
        return "\n".join(["| ended | histories |", "|---|---:|", *rows])


def play(where: Ground, plan: Plan, *, number: int = 0, sql: Callable[[str], Any] | None = None) -> HistoryResult:
    started = time.monotonic()
    player = HistoryPlayer(Scene(where, plan, sql))
    ended, violation, done = RIGHT, "", 0
    for act in plan.acts:
        try:
            player.play(act)
        except Violation as error:
            violation = f"{act.verb}: {error}"
            finding = finding_in(act.verb.name, str(error), is_bare=not player.model.knows_all)
            ended = WRONG if finding is None else finding.subject
            break
        done += 1
        if player.is_over:
            break
    return HistoryResult(
        number=number,
        plan=plan,
        ended=ended,
        acts=done,
        records=len(player.model.kafka),
        seconds=time.monotonic() - started,
        violation=violation,
        notes=tuple(player.notes),
    )


def shrink(
    where: Ground, result: HistoryResult, *, seconds: float, sql: Callable[[str], Any] | None = None
) -> HistoryResult:
    deadline = time.monotonic() + seconds
    acts = list(result.plan.acts[: result.acts + 1])
    least = replace(result, plan=replace(result.plan, acts=tuple(acts)))
    width = max(1, len(acts) // 2)
    while width and time.monotonic() < deadline:
        start = 0
        while start < len(acts) - 1 and time.monotonic() < deadline:
            fewer = acts[:start] + acts[min(start + width, len(acts) - 1) :]
            tried = play(where, replace(least.plan, acts=tuple(fewer)), number=result.number, sql=sql)
            if tried.violation and _kind(tried) == _kind(result):
                acts, least = list(tried.plan.acts[: tried.acts + 1]), tried
            else:
                start += width
        width //= 2
    return replace(least, plan=replace(least.plan, acts=tuple(acts)))


def _kind(result: HistoryResult) -> tuple[str, str]:
    return result.ended, "".join(character for character in result.violation[:60] if not character.isdigit())


def chaos(
    stack: Stack,
    results: HistoryResults,
    *,
    histories: int,
    acts: int,
    say: Callable[[str], None],
    numbers: Iterable[int] | None = None,
    shrink_seconds: float = 0.0,
    sql: Callable[[str], Any] | None = None,
) -> None:
    with ground(stack) as where:
        for number in numbers or range(len(results.rounds), histories):
            result = play(where, Plan.draw(results.seed, number, acts), number=number, sql=sql)
            if result.ended == WRONG and shrink_seconds:
                result = shrink(where, result, seconds=shrink_seconds, sql=sql)
            results.add(result)  # type: ignore[arg-type]
            say(str(result))
            if result.ended == WRONG:
                say("\n".join(result.notes))


def script(plan: Plan, acts: Sequence[Act]) -> str:
    return f"{replace(plan, acts=())!r}\n" + "\n".join(f"  {act!r}" for act in acts)
