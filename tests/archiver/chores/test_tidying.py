"""Tidying after commits: interval and failures."""

from __future__ import annotations

from typing import Any, cast

import pytest

from archiver.chores.tidying import EVERY_COMMITS, tidying
from archiver.errors import StorageUnavailable
from schema_mapping.errors import ContextError
from tests.support.maintenance.chore_states import ChoreStates, ChoreTurns


@pytest.fixture
def tidied() -> list[tuple[ContextError, ...]]:
    return []


def run(tidied: list[tuple[ContextError, ...]], states: ChoreStates) -> None:
    chore = tidying(lambda *_: tidied.pop(0))
    ChoreTurns((chore,), states).run("orders", when="after commit", opened=cast("Any", object()))


def test_commits_are_counted_over_several_jobs(tidied: list[tuple[ContextError, ...]]) -> None:
    states = ChoreStates()
    tidied += [(), ()]
    for commit in range(1, 2 * EVERY_COMMITS):
        states.last["orders"] = commit
        run(tidied, states)
    assert len(tidied) == 1
    assert states.states["orders", "tidying"].cursor == EVERY_COMMITS


def test_a_failure_is_tried_again(tidied: list[tuple[ContextError, ...]]) -> None:
    states = ChoreStates(last={"orders": EVERY_COMMITS})
    tidied += [(StorageUnavailable("away"),), ()]
    for _ in range(2):  # another job, so that it doesn't rest
        run(tidied, states)
    assert tidied == []
    state = states.states["orders", "tidying"]
    assert (state.cursor, state.failures) == (EVERY_COMMITS, 0)
