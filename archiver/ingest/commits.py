"""Commits of several topics in threads. An error of a topic ends only its run, any other error the job's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, as_completed, wait
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeAlias

from archiver.ingest.topic.run import TopicRun
from catalog.iceberg.table_catalog import TableCatalog
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)

InThread: TypeAlias = Callable[[TopicRun, Callable[[TopicRun, TableCatalog], None]], "Future[None]"]
"""Has work on a topic done by another thread, with a connection to the catalog that no other thread uses meanwhile."""


class Commits:
    """The commits of a `with` block, whose end waits for all.

    From `begin` on do nothing else with a topic. After an exception, commits that haven't begun are dropped.
    """

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._begun: dict[Future[None], TopicRun] = {}
        self._is_broken = False

    def begin(self, run: TopicRun) -> None:
        """Commit a topic in a thread. Raises what an earlier commit raised, except errors of topics."""
        if self._is_broken:
            for each in [each for each in self._begun if each.done()]:
                self._judge(each)
        done = self._in_thread(run, commit)
        self._begun[done] = run
        done.add_done_callback(self._ended)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                for each in as_completed(tuple(self._begun)):
                    self._judge(each)
        finally:
            others = self._broken_off()
        if others and isinstance(error, ContextError):  # what may be tried again must not hide what may not
            raise others[0]

    def _broken_off(self) -> list[BaseException]:
        """Drop what hasn't begun, wait for the rest; return the logged errors."""
        for each in self._begun:
            each.cancel()
        wait(self._begun)
        found = []
        for each in tuple(self._begun):
            try:
                self._judge(each)
            except BaseException as another:  # noqa: BLE001 - the caller decides
                _LOG.error("a commit failed, too, as the run was ended", exc_info=another)
                found.append(another)
        return found

    def _judge(self, ended: Future[None]) -> None:
        """Raise a commit's error, unless it is its topic's."""
        run = self._begun.pop(ended)
        error = None if ended.cancelled() else ended.exception()
        if isinstance(error, ContextError):  # no connection could be made
            run.fail(error)
        elif error is not None:
            raise error

    def _ended(self, ended: Future[None]) -> None:
        if not ended.cancelled() and not isinstance(ended.exception(), ContextError | None):
            self._is_broken = True


def commit(run: TopicRun, catalog: TableCatalog) -> None:
    """Commit a topic's staged ranges. An error ends only this topic's run."""
    with failing(run):
        run.commit(catalog)


@contextmanager
def failing(run: TopicRun) -> Iterator[None]:
    """Let an error of the block end only this topic's run."""
    try:
        yield
    except ContextError as error:
        run.fail(error)
