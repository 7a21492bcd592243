"""Give chores their turns. Errors never fail the job."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from archiver.chores.chore import Chore, ChoreOutcome, ChoreTurn, When
from archiver.commit.commit_staged import StagedTopic
from archiver.engine.runner import Engine
from archiver.observer import Observer, all_of, ignore
from catalog.model import TopicRow
from catalog.registry import Registry
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoreEnded:
    topic: str
    chore: str
    seconds: float
    failures: tuple[Exception, ...] = ()


ChoreObserver: TypeAlias = Observer[ChoreEnded]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoreTopic:
    topic: TopicRow
    opened: StagedTopic | None = None


class ChoreRunner:
    """Thread-safe for different topics."""

    def __init__(
        self, chores: Sequence[Chore], observer: ChoreObserver = ignore, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        names = [chore.name for chore in chores]
        assert len(names) == len(set(names)), "cursors are kept by name"
        self._chores = tuple(chores)
        self._observer = all_of(observer)
        self._clock = clock
        self._rests_until: dict[tuple[str, str], float] = {}
        self._waiting: dict[tuple[str, str], str] = {}

    def run(
        self,
        when: When,
        topics: Sequence[ChoreTopic],
        registry: Registry,
        *,
        is_over: Callable[[], bool],
        engine: Callable[[], Engine] | None = None,
    ) -> None:
        """Never raises an Exception."""
        for chore in self._chores:
            if chore.when != when:
                continue
            for topic in topics:
                if is_over():
                    return
                name = topic.topic.topic
                if self._rests_until.get((chore.name, name), 0.0) <= self._clock():
                    try:
                        if chore.applies_to(name):
                            self._turn(chore, topic, registry, is_over=is_over, engine=engine)
                    except Exception:  # noqa: BLE001 - it is logged with its traceback
                        _LOG.exception("%s of %s failed; archiving continues", chore.name, name)
                        self._rest(chore, name)

    def _turn(
        self,
        chore: Chore,
        on: ChoreTopic,
        registry: Registry,
        *,
        is_over: Callable[[], bool],
        engine: Callable[[], Engine] | None,
    ) -> None:
        name, started = on.topic.topic, self._clock()
        try:
            turn = ChoreTurn(
                topic=on.topic,
                opened=on.opened,
                registry=registry,
                state=registry.chores.state(on.topic, chore.name),
                keep=partial(registry.chores.keep_cursor, on.topic, chore.name),
                is_over=is_over,
                engine=engine,
            )
            outcome = chore.run(turn)
        except Exception as error:  # noqa: BLE001 - archiving continues after any error
            outcome = ChoreOutcome(failures=(error,))
        self._note(chore, on, registry, outcome)
        self._log(chore, name, outcome)
        seconds = self._clock() - started
        self._observer(ChoreEnded(topic=name, chore=chore.name, seconds=seconds, failures=outcome.failures))
        if outcome.is_finished and (outcome.failures or chore.when == "when idle"):
            self._rest(chore, name)

    def _note(self, chore: Chore, on: ChoreTopic, registry: Registry, outcome: ChoreOutcome) -> None:
        try:
            if outcome.failures:
                error = outcome.failures[0]
                registry.chores.note_failed(on.topic, chore.name, f"{type(error).__name__}: {error}")
            elif outcome.is_finished and outcome.waits_for is None:
                registry.chores.note_ended(on.topic, chore.name)
        except ContextError as error:
            _LOG.warning("how %s of %s ended is not recorded: %s", chore.name, on.topic.topic, error)

    def _log(self, chore: Chore, topic: str, outcome: ChoreOutcome) -> None:
        for error in outcome.failures:
            trace = None if isinstance(error, ContextError) else error
            _LOG.warning("%s of %s failed; archiving continues: %s", chore.name, topic, error, exc_info=trace)
        key, reason = (chore.name, topic), outcome.waits_for.message if outcome.waits_for else None
        if reason is not None and self._waiting.get(key) != reason:  # once for each reason: `status` repeats it
            _LOG.warning("%s of %s waits; archiving continues: %s", chore.name, topic, outcome.waits_for)
        if reason is None:
            self._waiting.pop(key, None)
        else:
            self._waiting[key] = reason

    def _rest(self, chore: Chore, topic: str) -> None:
        self._rests_until[chore.name, topic] = self._clock() + chore.rest_seconds
