"""Builds and merges continue after errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from archiver.errors import BadSegment, ObjectMissing
from catalog.errors import RegistryUnreachable
from catalog.term_runs import FAN_OUT
from tests.support.archive.lake import Lake
from tests.support.archive.memory_index import LakeIndex

ROWS = 10


@pytest.fixture
def index(tmp_path: Path, archive: Any) -> LakeIndex:
    index = LakeIndex(Lake(tmp_path / "lake", archive.rows), tmp_path, "key", memory=900)
    for number in range(FAN_OUT - 1):
        add_file(index, archive, number)
    index.build()
    assert len(index.objects()) == FAN_OUT - 1
    return index


def add_file(index: LakeIndex, archive: Any, number: int) -> None:
    start = number * ROWS
    rows = [archive.row(offset=start + n, key=b"k%d" % (start + n)) for n in range(ROWS)]
    index.lake.add(archive.rows, archive.batch(rows), start, start + ROWS)


@pytest.mark.parametrize(
    ("injure", "kind"), [(Path.unlink, ObjectMissing), (lambda it: it.write_bytes(b"PAR1"), BadSegment)]
)
def test_a_run_that_cannot_be_read_is_built_again(
    index: LakeIndex, archive: Any, injure: Callable[[Path], Any], kind: type[Exception]
) -> None:
    injure(index.objects()[2])
    add_file(index, archive, FAN_OUT - 1)
    report = index.build()
    assert [type(error) for error in report.failures] == [kind]
    assert (report.files, report.merged, report.left) == (1, 0, 1)
    report = index.build()
    assert (report.files, report.merged, report.left, report.failures) == (1, 1, 0, [])
    (run,) = index.registry.runs.values()
    assert (run.level, run.entries, len(index.objects())) == (1, FAN_OUT * ROWS, 1)


def test_a_lost_answer_of_the_registry_deletes_no_run(index: LakeIndex, archive: Any) -> None:
    add = index.registry.add

    def lost(*args: Any, **options: Any) -> None:
        add(*args, **options)
        raise RegistryUnreachable("the answer was lost")

    index.registry.add = lost
    add_file(index, archive, FAN_OUT)
    with pytest.raises(RegistryUnreachable):
        index.build()
    paths = sorted(run.path.removeprefix("file://") for run in index.registry.runs.values())
    assert paths == [str(path) for path in index.objects()]


@pytest.mark.parametrize("is_away", [False, True])
def test_a_failed_build_deletes_its_objects(index: LakeIndex, archive: Any, is_away: bool) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        if is_away:
            index.registry.load = refused
        raise RegistryUnreachable("it is away")

    index.registry.add = refused
    add_file(index, archive, FAN_OUT)
    with pytest.raises(RegistryUnreachable):
        index.build()
    assert len(index.objects()) == FAN_OUT - 1 + is_away


def test_a_file_that_the_table_lists_twice_is_read_once(index: LakeIndex, archive: Any) -> None:
    index.memory = 1 << 20
    add_file(index, archive, FAN_OUT - 1)
    index.lake.rewrite()
    (file,) = index.lake.files()
    index.lake.append(file)
    assert len(index.lake.files()) == 2
    report = index.build()
    assert (report.files, report.left, report.entries) == (1, 0, FAN_OUT * ROWS)


@pytest.mark.parametrize("error", [pa.ArrowNotImplementedError("no cast"), ValueError("bad"), TypeError("no number")])
def test_a_file_with_odd_values_is_left_out(index: LakeIndex, archive: Any, error: Exception) -> None:
    answers: Iterator[bool | Exception] = iter([False, error])

    def fails_within_the_file() -> bool:
        answer = next(answers, False)
        if isinstance(answer, Exception):
            raise answer
        return answer

    add_file(index, archive, FAN_OUT - 1)
    report = index.build(is_over=fails_within_the_file)
    (failure,) = report.failures
    assert (report.files, report.left, str(error) in str(failure)) == (0, 1, True)
    assert index.build().left == 0


def over_after(count: int) -> Callable[[], bool]:
    turns = iter(range(10_000))
    return lambda: next(turns) >= count


def test_a_build_ends_within_a_file(index: LakeIndex, archive: Any) -> None:
    add_file(index, archive, FAN_OUT - 1)
    report = index.build(is_over=over_after(1))  # before the file, not in it
    assert (report.files, report.left, report.failures) == (0, 1, [])
    assert len(index.objects()) == FAN_OUT - 1
    assert index.build().left == 0


@pytest.mark.parametrize("leaves", [0, 3])
def test_a_merge_ends_within_its_runs(index: LakeIndex, archive: Any, leaves: int) -> None:
    add_file(index, archive, FAN_OUT - 1)
    report = index.build(is_over=over_after(3 + leaves))  # before and in the file, and before the merge
    assert (report.files, report.merged, report.left, report.failures) == (1, 0, 0, [])
    assert len(index.objects()) == len(index.registry.runs) == FAN_OUT
    assert not [path for path in index.store.spool.rglob("*") if path.is_file()]
    assert index.build().merged == 1


def test_large_merges_need_a_build_without_limit(index: LakeIndex, archive: Any) -> None:
    add_file(index, archive, FAN_OUT - 1)
    assert index.build(most_entries=FAN_OUT * ROWS - 1).merged == 0
    assert index.build(most_entries=FAN_OUT * ROWS).merged == 1


def test_a_file_that_takes_all_the_time_comes_last(index: LakeIndex, archive: Any) -> None:
    for number in (FAN_OUT - 1, FAN_OUT):
        add_file(index, archive, number)
    report = index.build(is_over=over_after(1))
    assert (report.files, report.left, len(index.registry.cut_paths)) == (0, 2, 1)
    turns = iter([False, False, False])
    report = index.build(is_over=lambda: next(turns, True))
    assert (report.files, report.left) == (1, 1), "a later file isn't kept waiting"
    assert index.build().left == 0
    assert index.registry.cut_paths == set()
