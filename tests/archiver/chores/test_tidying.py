"""Tidying after commits: interval and failures."""

from __future__ import annotations

from typing import Any, cast

import pytest

from archiver.chores import tidying
from archiver.chores.tidying import EVERY_COMMITS, TIDYING
from archiver.errors import StorageUnavailable
from schema_mapping.errors import ContextError
from tests.support.maintenance.chore_states import ChoreStates, ChoreTurns


@pytest.fixture
def tidied(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ContextError, ...]]:
    outcomes: list[tuple[ContextError, ...]] = []
    monkeypatch.setattr(tidying, "tidy", lambda *_: outcomes.pop(0))
    return outcomes


def test_commits_are_counted_over_several_jobs(tidied: list[tuple[ContextError, ...]]) -> None:
    states = ChoreStates()
    tidied += [(), ()]
    for commit in range(1, 2 * EVERY_COMMITS):
        states.last["orders"] = commit
        ChoreTurns((TIDYING,), states).run("orders", when="after commit", opened=cast("Any", object()))
    assert len(tidied) == 1
    assert states.states["orders", "tidying"].cursor == EVERY_COMMITS


def test_a_failure_is_tried_again(tidied: list[tuple[ContextError, ...]]) -> None:
    states = ChoreStates(last={"orders": EVERY_COMMITS})
    tidied += [(StorageUnavailable("away"),), ()]
    for _ in range(2):  # another job, so that it doesn't rest
        ChoreTurns((TIDYING,), states).run("orders", when="after commit", opened=cast("Any", object()))
    assert tidied == []
    state = states.states["orders", "tidying"]
    assert (state.cursor, state.failures) == (EVERY_COMMITS, 0)
