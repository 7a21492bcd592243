"""How files are shared out to tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from archiver.archive.table_files import TableFile
from archiver.engine.runner import Outcome
from archiver.storage.formats import FORMATS
from archiver.upkeep.verify.file import FileResult, FileToRead, VerifyTarget, VerifyTask
from archiver.upkeep.verify.file_claims import Identity
from archiver.upkeep.verify.reading import TASK_BYTES, TASK_FILES, FileReading

MB = 1 << 20


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
    """An engine that answers for each file, and keeps the tasks."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.tasks: list[VerifyTask] = []

    def run_tasks(self, tasks: Sequence[VerifyTask], run: object) -> Iterator[Outcome[Any]]:
        self.tasks += tasks
        for at, task in enumerate(tasks):
            results = tuple(
                FileResult(path=each.file.path, size_bytes=each.file.size_bytes, modified_ms=0) for each in task.files
            )
            yield Outcome(index=at, result=results, error=None)

    def interrupt(self) -> None:
        """Nothing runs."""


def tasks_of(slots: int, *sizes: int) -> list[int]:
    """How many files each task has."""
    engine = Recording(slots)
    target = VerifyTarget(
        identity=Identity(cluster_id="c", topic="t", topic_id="", table="a.t"),
        objects=None,  # type: ignore[arg-type]
        formats=FORMATS,
        mappings={},
    )
    files = wanted(*sizes)
    found = FileReading(target=target, state=None, engine=lambda _: engine, observer=lambda _: None)
    found.read(files)
    assert found.results.keys() == {each.file.path for each in files}
    assert all(
        sum(one.file.size_bytes for one in task.files) <= TASK_BYTES or len(task.files) == 1 for task in engine.tasks
    )
    return [len(task.files) for task in engine.tasks]


def test_one_slot_has_as_few_tasks_as_their_size_allows() -> None:
    assert tasks_of(1, *[MB] * 100) == [100]
    assert tasks_of(1, *[50 * MB] * 5) == [2, 2, 1]


def test_slots_get_several_tasks_each() -> None:
    assert tasks_of(2, *[MB] * 100) == [12] * 8 + [4]


def test_a_large_file_has_a_task_of_its_own() -> None:
    assert tasks_of(1, 400 * MB, MB, MB) == [1, 2]


def test_a_task_has_a_bounded_number_of_files() -> None:
    assert tasks_of(1, *[1] * (TASK_FILES + 3)) == [TASK_FILES, 3]


@pytest.mark.parametrize("slots", [1, 2, 7])
def test_files_without_bytes_are_read_too(slots: int) -> None:
    assert sum(tasks_of(slots, 0, 0, 0)) == 3
