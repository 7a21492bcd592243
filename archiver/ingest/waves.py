"""Waves over all topics: plan, run tasks, commit.

A topic's steps never overlap, and a wave ends with its commits.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from archiver.config.model import ArchiveSection
from archiver.engine.grouped import run_grouped
from archiver.engine.runner import Engine
from archiver.fault_points import FaultPoint, pass_point
from archiver.ingest.commits import Commits, InThread, failing
from archiver.ingest.events import JobObserver, WavePlanned
from archiver.ingest.plan.backlog import Backlog
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.plan.wave import WaveLimits, WavePlanner, small_together, time_shares
from archiver.ingest.stopping import interrupt_on
from archiver.ingest.task.values import TaskResult, TopicTarget, TranslateTask
from archiver.ingest.task.work import together, translate_range
from archiver.ingest.topic.prefetch import Prefetched
from archiver.ingest.topic.run import TopicRun

_LEAST_BUDGET_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveSteps:
    prefetch: Callable[[Sequence[TopicRun]], Mapping[TopicRun, Prefetched]]
    in_thread: InThread
    target: Callable[[TopicRun], TopicTarget]
    engine: Callable[[], Engine]


class Waves:
    """Run until every topic reaches its log end, or `stop`."""

    def __init__(
        self,
        runs: Sequence[TopicRun],
        steps: WaveSteps,
        *,
        settings: ArchiveSection,
        observer: JobObserver,
        stop: threading.Event,
    ) -> None:
        self._runs = runs
        self._left = list(runs)
        self._steps = steps
        self._settings = settings
        self._observer = observer
        self._stop = stop
        self._planner = WavePlanner[TopicRun]()

    def run(self) -> int:
        """Return the number of waves. Starts the engine only for work."""
        wave = 0
        while not self._stop.is_set():
            backlogs = self._backlogs()
            if not backlogs or self._stop.is_set():
                break
            wave += 1
            engine = self._steps.engine()
            owners = self._planner.plan(backlogs, self._limits(engine.slots))
            self._observer(WavePlanned(wave=wave, ranges=_by_topic(owners)))
            pass_point(FaultPoint.AFTER_PLAN)
            tasks = self._tasks(owners, time_shares(owners, backlogs, slots=engine.slots), engine.slots)
            self._work(owners, tasks, small_together(owners, backlogs, slots=engine.slots), engine)
        for run in self._runs:
            with failing(run):
                run.finish()
        return wave

    def _backlogs(self) -> dict[TopicRun, tuple[Backlog, ...]]:
        planned: dict[TopicRun, tuple[Backlog, ...]] = {}
        for run, prefetched in self._steps.prefetch(
            [run for run in self._left if not (run.failed or run.is_done)]
        ).items():
            if not self._stop.is_set():
                with failing(run):
                    planned[run] = run.plan(prefetched)
        planned = {run: backlogs for run, backlogs in planned.items() if backlogs}
        self._left = [run for run in self._left if run in planned or run.is_waiting]
        return planned

    def _limits(self, slots: int) -> WaveLimits:
        return WaveLimits(
            slots=slots,
            most_tasks=max(slots, int(slots * self._settings.max_commit_interval / _LEAST_BUDGET_SECONDS)),
            task_bytes=self._settings.task_size,
            tasks_per_partition=self._settings.tasks_per_partition,
        )

    def _work(
        self,
        owners: Sequence[tuple[TopicRun, PlannedRange]],
        tasks: Sequence[TranslateTask],
        groups: Sequence[Sequence[int]],
        engine: Engine,
    ) -> None:
        left = Counter(run for run, _ in owners)
        outcomes = run_grouped(engine, tasks, translate_range, groups, is_stopped=self._stop.is_set, together=together)
        # `interrupt_on` only now: `run_grouped` clears earlier interrupts
        with Commits(self._steps.in_thread) as commits, interrupt_on(self._stop, engine), closing(outcomes):
            for outcome in outcomes:
                run, range_ = owners[outcome.index]
                with failing(run):
                    run.take(range_, outcome.result or TaskResult(ranges=(), error=outcome.error))
                left[run] -= 1
                if not left[run] and not run.failed:
                    commits.begin(run)

    def _tasks(
        self, owners: Sequence[tuple[TopicRun, PlannedRange]], shares: Sequence[float], slots: int
    ) -> list[TranslateTask]:
        targets = {run: self._steps.target(run) for run, _ in owners}
        plan_time_ms = time.time_ns() // 1_000_000
        return [
            TranslateTask(
                target=targets[run],
                planned=planned,
                plan_time_ms=plan_time_ms,
                budget_seconds=max(self._settings.max_commit_interval * share, _LEAST_BUDGET_SECONDS),
                spool=self._settings.spool,
                spool_bytes=self._settings.spool_size // slots,
            )
            for (run, planned), share in zip(owners, shares, strict=True)
        ]


def _by_topic(owners: Sequence[tuple[TopicRun, PlannedRange]]) -> dict[str, tuple[PlannedRange, ...]]:
    planned: dict[str, list[PlannedRange]] = defaultdict(list)
    for run, range_ in owners:
        planned[run.name].append(range_)
    return {name: tuple(ranges) for name, ranges in planned.items()}
