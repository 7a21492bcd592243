"""Chores in memory, and a runner's turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from archiver.chores.chore import Chore, When
from archiver.chores.runner import ChoreEnded, ChoreRunner, ChoreTopic
from archiver.commit.commit_staged import StagedTopic
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.registry.chores import ChoreState, NumberedCommits


@dataclass
class ChoreStates:
    last: dict[str, int] = field(default_factory=dict)
    states: dict[tuple[str, str], ChoreState] = field(default_factory=dict)
    failure: Exception | None = None

    @property
    def registry(self) -> Registry:
        @dataclass
        class Account:
            chores: Any

        return cast("Registry", Account(self))

    def state(self, topic: TopicRow, chore: str) -> ChoreState:
        if self.failure is not None:
            raise self.failure
        state = self.states.get((topic.topic, chore), ChoreState(chore=chore))
        return replace(state, behind=self.last.get(topic.topic, 0) - state.cursor)

    def keep_cursor(self, topic: TopicRow, chore: str, cursor: int) -> None:
        self._set(topic, chore, cursor=max(cursor, self.state(topic, chore).cursor))

    def note_ended(self, topic: TopicRow, chore: str) -> None:
        self._set(topic, chore, failures=0, error=None)

    def note_failed(self, topic: TopicRow, chore: str, error: str) -> None:
        self._set(topic, chore, failures=self.state(topic, chore).failures + 1, error=error)

    def commits_since(self, topic: TopicRow, cursor: int, *, most: int) -> NumberedCommits | None:
        last = self.last.get(topic.topic, 0)
        return NumberedCommits(through=min(last, cursor + most), ranges=()) if cursor < last else None

    def _set(self, topic: TopicRow, chore: str, **values: Any) -> None:
        self.states[topic.topic, chore] = replace(self.state(topic, chore), **values)


def row(topic: str) -> TopicRow:
    return TopicRow(id=1, cluster_id="c", topic=topic, topic_id=None, table=f"kafka.{topic}")


@dataclass
class ChoreTurns:
    chores: Sequence[Chore]
    states: ChoreStates = field(default_factory=ChoreStates)
    now: list[float] = field(default_factory=lambda: [0.0])
    ended: list[ChoreEnded] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runner = ChoreRunner(self.chores, self.ended.append, clock=lambda: self.now[0])

    def run(
        self,
        *topics: str,
        when: When = "when idle",
        opened: StagedTopic | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.runner.run(
            when,
            [ChoreTopic(topic=row(name), opened=opened) for name in topics],
            self.states.registry,
            is_over=is_over,
            engine=cast("Any", None),
        )
