"""How tasks get their files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from archiver.archive.table_files import TableFile
from archiver.engine.runner import TaskOutcome
from archiver.errors import WorkerLost
from archiver.storage.formats import FORMATS
from archiver.upkeep.verify.file import FileToRead, VerifiedFile, VerifyTarget, VerifyTask
from archiver.upkeep.verify.file_claims import Identity
from archiver.upkeep.verify.findings import FaultKind
from archiver.upkeep.verify.reading import TASK_BYTES, FileReading

MB = 1 << 20
TARGET = VerifyTarget(
    topic="t",
    identity=Identity(cluster_id="c", topic="t", topic_id="", table="a.t"),
    objects=None,  # type: ignore[arg-type]
    formats=FORMATS,
    mappings={},
)


def wanted(*sizes: int) -> list[FileToRead]:
    return [
        FileToRead(
            file=TableFile(
                path=f"s3://b/{at}.parquet",
                format="parquet",
                size_bytes=size,
                rows=1,
                spec_id=0,
                partition_values=(),
                partitions=None,
                offsets=None,
                latest=None,
            ),
            cuts=(),
        )
        for at, size in enumerate(sizes)
    ]


class Recording:
    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.tasks: list[VerifyTask] = []

    def run_tasks(self, tasks: Sequence[VerifyTask], run: object) -> Iterator[TaskOutcome[Any]]:
        self.tasks += tasks
        for at, task in enumerate(tasks):
            results = tuple(
                VerifiedFile(path=file.file.path, size_bytes=file.file.size_bytes, modified_ms=0) for file in task.files
            )
            yield TaskOutcome(index=at, result=results, error=None)

    def interrupt(self) -> None: ...


def tasks_of(slots: int, *sizes: int) -> list[int]:
    engine = Recording(slots)
    files = wanted(*sizes)
    reading = FileReading(target=TARGET, state=None, engine=lambda _: engine, observer=lambda _: None)
    reading.read(files)
    assert reading.results.keys() == {file.file.path for file in files}
    assert all(
        sum(file.file.size_bytes for file in task.files) <= TASK_BYTES or len(task.files) == 1 for task in engine.tasks
    )
    return [len(task.files) for task in engine.tasks]


def test_one_slot_has_as_few_tasks_as_are_worth_their_start() -> None:
    assert tasks_of(1, *[MB] * 100) == [32, 32, 32, 4]
    assert tasks_of(1, *[50 * MB] * 5) == [1] * 5
    assert tasks_of(1, *[50 * MB] * 30) == [2] * 15


def test_slots_get_several_tasks_each() -> None:
    assert tasks_of(2, *[MB] * 100) == [12] * 8 + [4]


def test_a_large_file_has_a_task_of_its_own() -> None:
    assert tasks_of(1, 400 * MB, MB, MB) == [1, 2]


@pytest.mark.parametrize(
    ("slots", "files", "tasks"),
    [(1, 300, [75] * 4), (1, 10_000, [512] * 19 + [272]), (2, 600, [75] * 8), (8, 600, [64] * 9 + [24])],
)
def test_many_small_files_are_shared_out(slots: int, files: int, tasks: list[int]) -> None:
    assert tasks_of(slots, *[0] * files) == tasks


def test_small_files_beside_a_large_one_keep_slots_busy() -> None:
    large, *small = tasks_of(8, 200 * MB, *[10 << 10] * 2_000)
    assert large == 1
    assert len(small) >= 2_000 // 64


class Dying(Recording):
    def __init__(self, path: str) -> None:
        super().__init__(1)
        self._path = path

    def run_tasks(self, tasks: Sequence[VerifyTask], run: object) -> Iterator[TaskOutcome[Any]]:
        for task, outcome in zip(tasks, super().run_tasks(tasks, run), strict=True):
            is_dead = any(file.file.path == self._path for file in task.files)
            yield TaskOutcome(index=outcome.index, error=WorkerLost("gone")) if is_dead else outcome


def test_a_worker_that_dies_takes_the_file_it_died_of_only() -> None:
    files = wanted(*[0] * 200)
    engine = Dying(files[150].file.path)
    reading = FileReading(target=TARGET, state=None, engine=lambda _: engine, observer=lambda _: None)
    reading.read(files)
    assert [path for path, result in reading.results.items() if result.faults] == [files[150].file.path]
    assert [fault.kind for fault in reading.results[files[150].file.path].faults] == [FaultKind.UNREADABLE]
    assert reading.results.keys() == {file.file.path for file in files}
    assert len(engine.tasks) == 4 + 4 + 16
