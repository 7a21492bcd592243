"""Waves over fake topics, with failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from archiver.config.model import ArchiveSection
from archiver.engine.runner import Engine, Result, Task, TaskOutcome
from archiver.errors import BrokerUnavailable, StorageError, TaskInterrupted
from archiver.ingest.plan.backlog import Backlog
from archiver.ingest.plan.ranges import PlannedRange
from archiver.ingest.task.values import TaskResult, TopicTarget
from archiver.ingest.topic.prefetch import Prefetched
from archiver.ingest.topic.run import TopicRun
from archiver.ingest.waves import Waves, WaveSteps
from archiver.observer import ignore
from catalog.iceberg.table_catalog import TableCatalog
from schema_mapping.errors import ContextError
from tests.support.engine.inline_engine import InlineEngine
from tests.support.kafka.logs import Bench, LogInMemory, batch
from tests.support.kafka.record_batches import Record

PLACE = BrokerUnavailable("not looked at")
THREADS = ThreadPoolExecutor(2)


class FakeRun:
    def __init__(self, name: str, *, partitions: int = 2, breaks: str = "") -> None:
        self.name = name
        self.failed = self.is_waiting = self.is_done = False
        self.steps: list[str] = []
        self._left = [
            Backlog(partition=number, spans=((0, 1),), bytes_per_offset=100.0) for number in range(partitions)
        ]
        self._breaks = breaks

    def plan(self, prefetched: Prefetched) -> tuple[Backlog, ...]:
        assert prefetched.archived is PLACE
        self._do("plan")
        planned, self._left = tuple(self._left), []
        return planned

    def take(self, planned: PlannedRange, result: TaskResult) -> None:
        assert result.error is None
        assert [(range_.start_offset, range_.end_offset) for range_ in result.ranges] == [(0, 1)]
        self._do("take")

    def commit(self, catalog: TableCatalog) -> None:
        self._do("commit")

    def finish(self) -> None:
        self._do("finish")

    def fail(self, error: ContextError) -> None:
        self.failed = True
        self.steps.append("fail")

    def _do(self, step: str) -> None:
        if step == self._breaks:
            raise BrokerUnavailable("away") if step == "plan" else StorageError("full")
        self.steps.append(step)


@pytest.fixture
def target(tmp_path: Path) -> TopicTarget:
    return Bench(folder=tmp_path, source=LogInMemory(log=[batch(0, Record())])).task(0, 1).target


@pytest.fixture
def settings(tmp_path: Path) -> ArchiveSection:
    return ArchiveSection(spool=tmp_path / "spool", max_commit_interval="100s")


def in_a_thread(run: TopicRun, commit: Callable[[TopicRun, Any], None]) -> Future[None]:
    return THREADS.submit(commit, run, None)


def waves(
    runs: list[FakeRun],
    target: TopicTarget,
    settings: ArchiveSection,
    *,
    stop: threading.Event | None = None,
    engine: Callable[[], Engine] = InlineEngine,
    prefetch: Callable[[Sequence[TopicRun]], Mapping[TopicRun, Prefetched]] | None = None,
) -> Waves:
    def target_of(run: TopicRun) -> TopicTarget:
        return target

    return Waves(
        runs,  # type: ignore[arg-type]
        WaveSteps(
            prefetch=prefetch or (lambda asked: dict.fromkeys(asked, Prefetched(archived=PLACE))),
            in_thread=in_a_thread,
            target=target_of,
            engine=engine,
        ),
        settings=settings,
        observer=ignore,
        stop=stop or threading.Event(),
    )


def test_each_topic_is_committed_once_its_tasks_are_in(target: TopicTarget, settings: ArchiveSection) -> None:
    runs = [FakeRun("a", partitions=3), FakeRun("b", partitions=1)]
    assert waves(runs, target, settings).run() == 1
    assert runs[0].steps == ["plan", "take", "take", "take", "commit", "plan", "finish"]
    assert runs[1].steps == ["plan", "take", "commit", "plan", "finish"]


@pytest.mark.parametrize(
    ("breaks", "steps"),
    [
        ("plan", ["fail", "finish"]),
        ("take", ["plan", "fail", "fail", "finish"]),
        ("commit", ["plan", "take", "take", "fail", "finish"]),
    ],
)
def test_a_failing_topic_leaves_the_others(
    target: TopicTarget, settings: ArchiveSection, breaks: str, steps: list[str]
) -> None:
    runs = [FakeRun("a", breaks=breaks), FakeRun("b")]
    waves(runs, target, settings).run()
    assert runs[0].steps == steps
    assert runs[1].steps == ["plan", "take", "take", "commit", "plan", "finish"]


def test_topics_commit_in_parallel_and_beside_tasks(target: TopicTarget, settings: ArchiveSection) -> None:
    both, others_task = threading.Barrier(2, timeout=30), threading.Event()

    class Together(FakeRun):
        def commit(self, catalog: TableCatalog) -> None:
            both.wait()
            assert others_task.wait(30)
            super().commit(catalog)

    class Later(FakeRun):
        def take(self, planned: PlannedRange, result: TaskResult) -> None:
            others_task.set()
            super().take(planned, result)

    runs = [Together("a"), Together("b"), Later("c")]
    assert waves(runs, target, settings).run() == 1
    assert {tuple(run.steps) for run in runs} == {("plan", "take", "take", "commit", "plan", "finish")}


def test_no_topic_is_planned_while_it_is_committed(target: TopicTarget, settings: ArchiveSection) -> None:
    class Slow(FakeRun):
        def commit(self, catalog: TableCatalog) -> None:
            time.sleep(0.1)
            super().commit(catalog)

    runs = [Slow(name, partitions=1) for name in "abc"]
    waves(runs, target, settings).run()
    assert {tuple(run.steps) for run in runs} == {("plan", "take", "commit", "plan", "finish")}


def test_if_tasks_break_off_no_other_commit_begins(target: TopicTarget, settings: ArchiveSection) -> None:
    busy, broken = threading.Barrier(3, timeout=30), threading.Event()

    class Held(FakeRun):
        def commit(self, catalog: TableCatalog) -> None:
            busy.wait()
            assert broken.wait(30)
            super().commit(catalog)

    class Breaking(InlineEngine):
        def run_tasks(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[TaskOutcome[Result]]:
            yield from super().run_tasks(tasks, run)
            busy.wait()
            threading.Timer(0.1, broken.set).start()
            raise KeyboardInterrupt

    runs = [Held(name, partitions=1) for name in "abc"]
    with pytest.raises(KeyboardInterrupt):
        waves(runs, target, settings, engine=Breaking).run()
    assert [run.steps[-1] for run in runs] == ["commit", "commit", "take"]


def test_a_defect_ends_the_tasks_that_still_run(target: TopicTarget, settings: ArchiveSection) -> None:
    ended: list[str] = []

    class Watched(InlineEngine):
        def run_tasks(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[TaskOutcome[Result]]:
            try:
                yield from super().run_tasks(tasks, run)
            finally:
                ended.append("tasks")

    class Defect(FakeRun):
        def take(self, planned: PlannedRange, result: TaskResult) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        waves([Defect("a")], target, settings, engine=Watched).run()
    assert ended == ["tasks"], "only once nobody knows the error any more"
    assert raised.traceback


def test_without_work_no_engine_is_started(target: TopicTarget, settings: ArchiveSection) -> None:
    def refuse() -> Engine:
        raise AssertionError

    assert waves([FakeRun("a", partitions=0)], target, settings, engine=refuse).run() == 0


def test_nothing_begins_once_stop_is_set(target: TopicTarget, settings: ArchiveSection) -> None:
    stop = threading.Event()
    stop.set()
    run = FakeRun("a")
    assert waves([run], target, settings, stop=stop).run() == 0
    assert run.steps == ["finish"]


def test_tasks_share_time_and_spool(target: TopicTarget, settings: ArchiveSection) -> None:
    planned = [PlannedRange(partition=number, start_offset=0, end_offset=1, owns_head=True) for number in range(8)]
    run = FakeRun("a")
    owners = [(run, range_) for range_ in planned]
    tasks = waves([run], target, settings)._tasks(owners, [0.25] * 8, slots=2)  # type: ignore[arg-type]
    assert {task.budget_seconds for task in tasks} == {25.0}
    assert {task.spool_bytes for task in tasks} == {settings.spool_size // 2}
    assert len({task.plan_time_ms for task in tasks}) == 1


def test_a_topic_that_is_done_is_not_looked_at_in_later_waves(target: TopicTarget, settings: ArchiveSection) -> None:
    """With a thousand topics, one long backlog would read all of them in each wave."""

    class Long(FakeRun):
        waves = 3

        def plan(self, prefetched: Prefetched) -> tuple[Backlog, ...]:
            self.waves -= 1
            left = self._left
            planned = super().plan(prefetched)
            self._left = left if self.waves > 0 else []
            return planned

    runs = [Long("a", partitions=1), FakeRun("b", partitions=0), FakeRun("c", partitions=0)]
    runs[2].is_waiting = True
    assert waves(runs, target, settings).run() == 3
    assert [run.steps.count("plan") for run in runs] == [4, 1, 4]


def test_who_is_done_is_not_asked_about_again(target: TopicTarget, settings: ArchiveSection) -> None:
    class Done(FakeRun):
        def commit(self, catalog: TableCatalog) -> None:
            super().commit(catalog)
            self.is_done = True

    runs = [FakeRun("a"), Done("b"), Done("c")]
    asked: list[list[str]] = []

    def prefetch(left: Sequence[TopicRun]) -> dict[TopicRun, Prefetched]:
        asked.append([run.name for run in left])
        return dict.fromkeys(left, Prefetched(archived=PLACE))

    assert waves(runs, target, settings, prefetch=prefetch).run() == 1
    assert asked == [["a", "b", "c"], ["a"]]
    assert runs[1].steps == ["plan", "take", "take", "commit", "finish"]


def test_a_stop_while_planning_starts_no_engine(target: TopicTarget, settings: ArchiveSection) -> None:
    stop = threading.Event()

    class Stopped(FakeRun):
        def plan(self, prefetched: Prefetched) -> tuple[Backlog, ...]:
            stop.set()
            return super().plan(prefetched)

    def refuse() -> Engine:
        raise AssertionError

    runs = [Stopped("a"), FakeRun("b")]
    assert waves(runs, target, settings, stop=stop, engine=refuse).run() == 0
    assert runs[0].steps == ["plan", "finish"]
    assert runs[1].steps == ["finish"], "planned though a stop was asked for"


def test_a_stop_while_tasks_are_made_ends_them_all(target: TopicTarget, settings: ArchiveSection) -> None:
    stop = threading.Event()

    class Watched(InlineEngine):
        def interrupt(self) -> None:
            super().interrupt()
            interrupted.set()

        def run_tasks(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[TaskOutcome[Result]]:
            outcomes = super().run_tasks(tasks, run)
            stop.set()

            def late() -> Iterator[TaskOutcome[Result]]:
                assert interrupted.wait(30)
                yield from outcomes

            return late()

    class Interrupted(FakeRun):
        def take(self, planned: PlannedRange, result: TaskResult) -> None:
            assert isinstance(result.error, TaskInterrupted)
            self.steps.append("interrupted")

    interrupted = threading.Event()
    run = Interrupted("a")
    waves([run], target, settings, stop=stop, engine=Watched).run()
    assert run.steps == ["plan", "interrupted", "interrupted", "commit", "finish"]
