"""Commits of several topics at once, each in a thread of its own, beside whatever the job does meanwhile.

A commit is mostly waiting: for storage, the catalog and Postgres. An error of a topic ends its run alone. What else a
commit raises is a defect or an interrupt, and ends the job's run as if its own thread had raised it.
"""

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
    """Commits that a `with` block begins. Its end waits for all of them, whether the block raised or not.

    Nothing else may be done to a topic from `begin` to the end of the block. Where the block raises, or a commit did
    what must end the run, those that haven't begun are left undone: what they would commit stays staged.
    """

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._begun: dict[Future[None], TopicRun] = {}
        self._is_broken = False

    def begin(self, run: TopicRun) -> None:
        """Have a topic committed. Raises what an earlier commit raised, unless it was an error of its topic."""
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
        """Leave undone what hasn't begun, wait for the rest, and return what it raised. It is logged."""
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
        """Raise what a commit raised, unless it was an error of its topic."""
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
    """Commit what is staged of a topic. An error ends only this topic's run."""
    with failing(run):
        run.commit(catalog)


@contextmanager
def failing(run: TopicRun) -> Iterator[None]:
    """Let an error of the block end only this topic's run."""
    try:
        yield
    except ContextError as error:
        run.fail(error)
