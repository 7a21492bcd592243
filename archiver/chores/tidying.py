"""The chore after commits: see `commit.tidying` (docs/adr/0028)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from archiver.chores.chore import Chore, ChoreOutcome, ChoreTurn
from archiver.commit.commit_staged import StagedTopic
from archiver.commit.tidying import tidy
from catalog.registry import Registry
from schema_mapping.errors import ContextError

EVERY_COMMITS: Final = 64


def tidying(tidy_topic: Callable[[StagedTopic, Registry], tuple[ContextError, ...]] = tidy) -> Chore:
    """Tidies a topic after each 64 commits; the cursor counts them also over jobs that end after each run."""

    def run(turn: ChoreTurn) -> ChoreOutcome:
        if turn.opened is None or turn.state.behind < EVERY_COMMITS:
            return ChoreOutcome(is_finished=False)
        failures = tidy_topic(turn.opened, turn.registry)
        if not failures:
            turn.keep(turn.last_commit)
        return ChoreOutcome(failures=failures)

    return Chore(name="tidying", when="after commit", run=run)


TIDYING: Final = tidying()
