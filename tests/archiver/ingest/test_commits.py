"""Parallel commits, and their errors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import cast

import pytest

from archiver.errors import StorageError
from archiver.ingest.commits import Commits
from archiver.ingest.topic.run import TopicRun
from catalog.errors import CatalogDenied
from catalog.iceberg.table_catalog import TableCatalog
from schema_mapping.errors import ContextError


class FakeRun:
    def __init__(self, name: str, does: Callable[[], object] = lambda: None) -> None:
        self.name = name
        self.is_committed = False
        self.error: ContextError | None = None
        self._does = does

    def commit(self, catalog: TableCatalog) -> None:
        self._does()
        self.is_committed = True

    def fail(self, error: ContextError) -> None:
        self.error = error


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def commits_by(threads: ThreadPoolExecutor) -> Commits:
    return Commits(lambda run, commit: threads.submit(commit, run, cast("TableCatalog", None)))


def begin(commits: Commits, *runs: FakeRun) -> None:
    for run in runs:
        commits.begin(cast("TopicRun", run))


def raises(error: BaseException) -> Callable[[], object]:
    def do() -> None:
        raise error

    return do


def test_the_end_waits_for_all(threads: ThreadPoolExecutor) -> None:
    slow = threading.Event()
    runs = [FakeRun(name, lambda: slow.wait(30)) for name in "abcde"]
    with commits_by(threads) as commits:
        begin(commits, *runs)
        assert not any(run.is_committed for run in runs)
        threading.Timer(0.1, slow.set).start()
    assert all(run.is_committed for run in runs)


def test_an_error_is_its_topics_alone(threads: ThreadPoolExecutor) -> None:
    full = StorageError("full")
    runs = [FakeRun("a", raises(full)), FakeRun("b"), FakeRun("c")]
    with commits_by(threads) as commits:
        begin(commits, *runs)
    assert [run.error for run in runs] == [full, None, None]
    assert [run.is_committed for run in runs] == [False, True, True]


def test_without_a_connection_to_the_catalog_a_topic_fails_alone(threads: ThreadPoolExecutor) -> None:
    denied = CatalogDenied("no more connections")

    def in_thread(run: TopicRun, commit: Callable[[TopicRun, TableCatalog], None]) -> Future[None]:
        if run.name == "a":
            return threads.submit(raises(denied))  # type: ignore[arg-type]
        return threads.submit(commit, run, cast("TableCatalog", None))

    runs = [FakeRun("a"), FakeRun("b")]
    with Commits(in_thread) as commits:
        begin(commits, *runs)
    assert [run.error for run in runs] == [denied, None]
    assert runs[1].is_committed


@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt(), SystemExit(3)])
def test_a_defect_is_raised_once_those_that_began_have_ended(threads: ThreadPoolExecutor, error: BaseException) -> None:
    slow, both = threading.Event(), threading.Barrier(2, timeout=30)

    def broken() -> None:
        both.wait()
        raise error

    def held() -> None:
        both.wait()
        slow.wait(30)

    runs = [FakeRun("a", broken), FakeRun("b", held), FakeRun("c", lambda: slow.wait(30)), FakeRun("d")]
    threading.Timer(0.2, slow.set).start()
    with pytest.raises(type(error)) as raised, commits_by(threads) as commits:
        begin(commits, *runs)
    assert raised.value is error
    assert [runs[number].is_committed for number in (0, 1, 3)] == [False, True, False]


def test_a_defect_is_raised_as_the_next_commit_would_begin(threads: ThreadPoolExecutor) -> None:
    began: list[str] = []

    def in_thread(run: TopicRun, commit: Callable[[TopicRun, TableCatalog], None]) -> Future[None]:
        began.append(run.name)
        ended = Future[None]()
        ended.set_exception(ZeroDivisionError())
        return ended

    with pytest.raises(ZeroDivisionError), Commits(in_thread) as commits:
        begin(commits, FakeRun("a"), FakeRun("b"))
    assert len(began) == 1


def test_error_in_the_block_ends_begun_commits_only(
    threads: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    slow, both = threading.Event(), threading.Barrier(3, timeout=30)

    def held() -> None:
        both.wait()
        assert slow.wait(30)

    def broken() -> None:
        both.wait()
        raise ZeroDivisionError

    runs = [FakeRun("a", held), FakeRun("b", broken), FakeRun("c", lambda: slow.wait(30))]
    left = FakeRun("d")

    def interrupted() -> None:
        with commits_by(threads) as commits:
            begin(commits, *runs, left)
            both.wait()
            threading.Timer(0.2, slow.set).start()
            raise KeyboardInterrupt

    with caplog.at_level(logging.ERROR), pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [run.is_committed for run in runs[:2]] == [True, False]
    assert not left.is_committed
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


@pytest.mark.parametrize("error", [ZeroDivisionError(), SystemExit(3)])
def test_what_may_be_tried_again_does_not_hide_a_defect(
    threads: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def away() -> None:
        with commits_by(threads) as commits:
            begin(commits, FakeRun("a", raises(error)))
            raise StorageError("away")

    with caplog.at_level(logging.ERROR), pytest.raises(type(error)) as raised:
        away()
    assert isinstance(raised.value.__context__, StorageError)
    assert len(caplog.records) == 1
