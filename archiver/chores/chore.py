"""Background work on one topic, with a crash-safe cursor over its commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from archiver.commit.commit_staged import StagedTopic
from archiver.engine.runner import Engine
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.registry.chores import ChoreState, NumberedCommits
from schema_mapping.errors import ContextError

When: TypeAlias = Literal["after commit", "when idle"]

REST_SECONDS: Final = 600.0
COMMITS_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoreTurn:
    """After a commit a turn is short and has no engine. Start nothing after `is_over`."""

    topic: TopicRow
    opened: StagedTopic | None
    registry: Registry
    state: ChoreState
    keep: Callable[[int], None]
    """Keeps the cursor: the chore is done with the commits up to this number, also after a crash."""
    is_over: Callable[[], bool]
    engine: Callable[[], Engine] | None = None

    @property
    def last_commit(self) -> int:
        return self.state.cursor + self.state.behind

    def commits(self, *, most: int = COMMITS_AT_ONCE) -> Iterator[NumberedCommits]:
        """Yield ranges of commits, which may repeat. Call `keep` with each `through` afterwards."""
        cursor = self.state.cursor
        while not self.is_over():
            commits = self.registry.chores.commits_since(self.topic, cursor, most=most)
            if commits is None:
                return
            yield commits
            cursor = commits.through


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoreOutcome:
    """Unless `is_finished`, the next turn continues. `waits_for` needs a person."""

    is_finished: bool = True
    failures: tuple[Exception, ...] = ()
    waits_for: ContextError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """The topic rests for `rest_seconds` afterwards."""

    name: str
    when: When
    run: Callable[[ChoreTurn], ChoreOutcome]
    applies_to: Callable[[str], bool] = field(default=lambda _: True)
    """Whether the topic with this name is configured for the chore."""
    rest_seconds: float = REST_SECONDS
