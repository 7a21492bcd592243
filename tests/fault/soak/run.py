"""The soak: numbered rounds on topics with a history."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from tests.fault.soak import faults
from tests.fault.soak.course import Course
from tests.fault.soak.deck import Round, deal
from tests.fault.soak.player import play
from tests.fault.soak.results import Results, RoundResult
from tests.fault.soak.scene import Ground, Scene, Shape
from tests.fault.soak.verdict import judge
from tests.support.catalog.lossy_catalog import lossy_proxy
from tests.support.kafka.brokers import Brokers
from tests.support.servers.stack import Stack
from tests.support.storage.lossy_objects import lossy_store

TOPIC_ROUNDS = 20
"""After this many rounds a fresh topic takes over."""
LAST_ROUND_S = 20.0
"""What is kept of the time for the last round, after which everything is read again."""
WHOLE_EVERY = 5
"""Rounds after which all that a topic ever had is read again."""


@contextmanager
def ground(stack: Stack) -> Iterator[Ground]:
    with ExitStack() as over:
        catalog = over.enter_context(lossy_proxy(stack.catalog_properties["uri"]))
        store = over.enter_context(lossy_store())
        yield Ground(stack=stack, catalog=catalog, store=store)


class Soak:
    """Rounds of one seed, each on the previous topic while that lasts."""

    def __init__(self, where: Ground, brokers: Brokers | None, seed: int) -> None:
        self._ground = where
        self._brokers = brokers
        self._seed = seed
        self._scene: Scene | None = None
        self._topic = -1
        self._rounds_on_topic = 0

    def play(self, dealt: Round, *, last: bool = False) -> RoundResult:
        scene = self._scene_for(dealt)
        self._rounds_on_topic += 1
        ends = last or self._rounds_on_topic >= TOPIC_ROUNDS
        whole = ends or self._rounds_on_topic % WHOLE_EVERY == 0
        result = play(dealt, scene, self._brokers, topic=self._topic, whole=whole)
        if ends or result.anomalies or faults.ends_topic(dealt.faults[0]):
            self._scene = None
        return result

    def _scene_for(self, dealt: Round) -> Scene:
        if self._scene is None or any(map(faults.needs_new_topic, dealt.faults)):
            self._scene = Scene(self._ground, Shape.draw(Random(f"topic {self._seed}/{dealt.number}")))
            self._topic = dealt.number
            self._rounds_on_topic = 0
            if not any(map(faults.needs_new_topic, dealt.faults)):
                archive_first(self._scene, dealt)
        return self._scene


def archive_first(scene: Scene, dealt: Round) -> None:
    course = Course(scene, None, Random(f"first {dealt.number}"))
    course.produce(300)
    course.heal()
    course.verified(judge(scene))
    if course.anomalies:
        raise AssertionError("\n".join(map(str, course.anomalies)))


def soak(
    stack: Stack,
    brokers: Brokers | None,
    results: Results,
    *,
    rounds: int,
    minutes: float | None = None,
    allowed: Callable[[faults.Fault], bool] = lambda _: True,
    kinds: Sequence[type[faults.Fault]] = (),
    say: Callable[[str], None],
) -> None:
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    with ground(stack) as where:
        player = Soak(where, brokers, results.seed)
        for number in range(len(results.rounds), rounds):
            last = number + 1 == rounds or (deadline is not None and time.monotonic() > deadline - LAST_ROUND_S)
            dealt = deal(results.seed, number, allowed=_of_kind(kinds, number, allowed))
            result = player.play(dealt, last=last)
            results.add(result)
            say(_line(result))
            if last:
                break


def _of_kind(
    kinds: Sequence[type[faults.Fault]], number: int, allowed: Callable[[faults.Fault], bool]
) -> Callable[[faults.Fault], bool]:
    if not kinds:
        return allowed
    kind = kinds[number % len(kinds)]
    return lambda fault: isinstance(fault, kind) and allowed(fault)


def stack_in(folder: Path, scratch: Path) -> Stack:
    from archiver.local import LocalStack
    from archiver.local.kafka import CLUSTER

    return Stack(LocalStack(folder).up(brokers=CLUSTER), scratch)


def _line(result: RoundResult) -> str:
    dealt = " and ".join(map(_text, result.faults))
    verdict = "WRONG: " + "; ".join(result.anomalies) if result.anomalies else "exactly once"
    text = f"{result.number:4} {result.seconds:5.1f} s {result.records:6,} records"
    return f"{text}  {dealt}: {', '.join(result.jobs)}: {verdict}"


def _text(fault: Mapping[str, Any]) -> str:
    said = " ".join(str(value) for name, value in fault.items() if name != "struck")
    return said if fault["struck"] else f"{said} (missed)"
