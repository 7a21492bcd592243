"""Chores: turns, cursors and errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from archiver.chores.chore import REST_SECONDS, Chore, ChoreOutcome, ChoreTurn, When
from archiver.errors import ConsentMissing, StorageUnavailable
from catalog.errors import RegistryUnreachable
from tests.support.maintenance.chore_states import ChoreStates, ChoreTurns


def chore(run: Callable[[ChoreTurn], ChoreOutcome], name: str = "sweeping", when: When = "when idle") -> Chore:
    return Chore(name=name, when=when, run=run)


class Killed(BaseException): ...


def test_a_chore_continues_at_its_cursor_after_a_crash() -> None:
    seen: list[int] = []
    states = ChoreStates(last={"orders": 10})

    def index(turn: ChoreTurn) -> ChoreOutcome:
        for commits in turn.commits(most=4):
            seen.append(commits.through)
            if seen == [4, 8]:
                raise Killed
            turn.keep(commits.through)
        return ChoreOutcome()

    with pytest.raises(Killed):
        ChoreTurns((chore(index),), states).run("orders")
    assert states.states["orders", "sweeping"].cursor == 4
    ChoreTurns((chore(index),), states).run("orders")
    assert seen == [4, 8, 8, 10], "what was not kept comes again, nothing before it does"
    assert states.states["orders", "sweeping"].cursor == 10


def test_each_topic_has_a_cursor_and_a_rest() -> None:
    runs: list[str] = []

    def run(turn: ChoreTurn) -> ChoreOutcome:
        runs.append(turn.topic.topic)
        turn.keep(turn.last_commit)
        return ChoreOutcome()

    turns = ChoreTurns((chore(run),), ChoreStates(last={"a": 3, "b": 5}))
    turns.run("a")
    turns.run("a", "b")
    assert runs == ["a", "b"], "a rests"
    assert {key: state.cursor for key, state in turns.states.states.items()} == {
        ("a", "sweeping"): 3,
        ("b", "sweeping"): 5,
    }
    turns.now[0] = REST_SECONDS
    turns.run("a")
    assert runs == ["a", "b", "a"]


def test_a_turn_that_time_ended_continues_at_once() -> None:
    outcomes = iter([ChoreOutcome(is_finished=False), ChoreOutcome()])
    turns = ChoreTurns((chore(lambda _: next(outcomes)),))
    for _ in range(3):
        turns.run("orders")
    assert [event.chore for event in turns.ended] == ["sweeping", "sweeping"]


def test_chores_run_at_their_time_and_stop_when_it_is_over() -> None:
    runs: list[str] = []

    def named(name: str, when: When) -> Chore:
        return chore(lambda _: runs.append(name) or ChoreOutcome(), name, when)  # type: ignore[func-returns-value]

    turns = ChoreTurns((named("a", "after commit"), named("b", "when idle"), named("c", "when idle")))
    turns.run("orders", is_over=lambda: len(runs) > 0)
    assert runs == ["b"]
    turns.run("orders", when="after commit")
    turns.run("orders", when="after commit")
    assert runs == ["b", "a", "a"], "after a commit no chore rests, unless it failed"


@pytest.mark.parametrize("fault", [ValueError("unexpected"), MemoryError(), StorageUnavailable("away")])
@pytest.mark.parametrize("when", ["after commit", "when idle"])
def test_a_fault_is_logged_counted_and_kept_and_stops_nothing(
    caplog: pytest.LogCaptureFixture, fault: Exception, when: When
) -> None:
    def fail(_: ChoreTurn) -> ChoreOutcome:
        raise fault

    later: list[str] = []
    after = chore(lambda _: later.append("ran") or ChoreOutcome(), "later", when)  # type: ignore[func-returns-value]
    turns = ChoreTurns((chore(fail, when=when), after))
    turns.run("orders", when=when)
    turns.run("orders", when=when)
    assert [event.failures for event in turns.ended if event.chore == "sweeping"] == [(fault,)], "then it rests"
    assert later
    state = turns.states.states["orders", "sweeping"]
    assert (state.failures, state.error) == (1, f"{type(fault).__name__}: {fault}")
    assert "sweeping of orders failed; archiving continues" in caplog.text
    assert (type(fault).__name__ in caplog.text) is not isinstance(fault, StorageUnavailable), "a traceback of defects"


def test_a_success_ends_the_failures() -> None:
    outcomes = iter([ChoreOutcome(failures=(StorageUnavailable("away"),)), ChoreOutcome()])
    turns = ChoreTurns((chore(lambda _: next(outcomes)),))
    turns.run("orders")
    assert turns.states.states["orders", "sweeping"].failures == 1
    turns.now[0] = REST_SECONDS
    turns.run("orders")
    assert turns.states.states["orders", "sweeping"].failures == 0


@pytest.mark.parametrize("when", ["after commit", "when idle"])
def test_a_registry_that_is_away_fails_no_commit(caplog: pytest.LogCaptureFixture, when: When) -> None:
    states = ChoreStates(failure=RegistryUnreachable("Postgres is away"))
    turns = ChoreTurns((chore(lambda _: ChoreOutcome(), when=when),), states)
    turns.run("orders", when=when)
    assert "sweeping of orders failed; archiving continues" in caplog.text
    assert "how sweeping of orders ended is not recorded" in caplog.text
    assert len(turns.ended[0].failures) == 1


def test_waiting_for_a_person_is_logged_once_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    reasons = iter([ConsentMissing("more than half"), ConsentMissing("more than half"), ConsentMissing("all")])
    turns = ChoreTurns((chore(lambda _: ChoreOutcome(waits_for=next(reasons))),))
    for turn in range(3):
        turns.now[0] = turn * REST_SECONDS
        turns.run("orders")
    assert [record.message.rpartition(": ")[2] for record in caplog.records] == ["more than half", "all"]
    assert not any(event.failures for event in turns.ended), "it is no failure"
