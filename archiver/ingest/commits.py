"""Commits of several topics at once, each in a thread of its own, beside whatever the job does meanwhile.

A commit is mostly waiting: for storage, the catalog and Postgres. An error of a topic ends its run alone. What else a
commit raises is a defect or an interrupt, and ends the job's run as if its own thread had raised it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
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
        self._begun: list[Future[None]] = []
        self._ended = SimpleQueue[tuple[TopicRun, Future[None]]]()
        self._left = 0

    def begin(self, run: TopicRun) -> None:
        """Have a topic committed. Raises what an earlier commit raised, unless it was an error of its topic."""
        while not self._ended.empty():
            self._raise_of_next()
        done = self._in_thread(run, commit)
        self._begun.append(done)
        self._left += 1
        done.add_done_callback(lambda ended: self._ended.put((run, ended)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._break_off()
            return
        try:
            while self._left:
                self._raise_of_next()
        except BaseException:
            self._break_off()
            raise

    def _break_off(self) -> None:
        """Leave undone what hasn't begun, and wait for the rest. What it raises is logged: the run ends for another."""
        for each in self._begun:
            each.cancel()
        while self._left:
            if (error := self._next_error()) is not None:
                _LOG.error("a commit failed, too, as the run was ended", exc_info=error)

    def _raise_of_next(self) -> None:
        error = self._next_error()
        if error is not None:
            raise error

    def _next_error(self) -> BaseException | None:
        """Wait until another commit has ended, and give what it raised, unless it was an error of its topic."""
        run, ended = self._ended.get()
        self._left -= 1
        error = None if ended.cancelled() else ended.exception()
        if isinstance(error, ContextError):  # no connection could be made
            run.fail(error)
            return None
        return error


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
