"""The chore after commits: see `commit.tidying` (docs/adr/0028)."""

from __future__ import annotations

from typing import Final

from archiver.chores.chore import Chore, ChoreOutcome, ChoreTurn
from archiver.commit.tidying import tidy

EVERY_COMMITS: Final = 64


def _run(turn: ChoreTurn) -> ChoreOutcome:
    if turn.opened is None or turn.state.behind < EVERY_COMMITS:
        return ChoreOutcome(is_finished=False)
    failures = tidy(turn.opened, turn.registry)
    if not failures:
        turn.keep(turn.last_commit)
    return ChoreOutcome(failures=failures)


TIDYING: Final = Chore(name="tidying", when="after commit", run=_run)
"""Tidies a topic after each 64 commits; the cursor counts them also over jobs that end after each run."""
