"""Commit several topics in threads. A topic's error ends only its run, any other error the job."""

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
    """The end of the `with` block waits for all commits.

    After `begin` don't use the topic. An exception drops pending commits.
    """

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._begun: dict[Future[None], TopicRun] = {}
        self._is_broken = False

    def begin(self, run: TopicRun) -> None:
        """Raises errors of earlier commits, except errors of topics."""
        if self._is_broken:
            for future in [future for future in self._begun if future.done()]:
                self._judge(future)
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
                for future in as_completed(tuple(self._begun)):
                    self._judge(future)
        finally:
            errors = self._broken_off()
        if errors and isinstance(error, ContextError):  # what may be tried again must not hide what may not
            raise errors[0]

    def _broken_off(self) -> list[BaseException]:
        for future in self._begun:
            future.cancel()
        wait(self._begun)
        errors = []
        for future in tuple(self._begun):
            try:
                self._judge(future)
            except BaseException as another:  # noqa: BLE001 - the caller decides
                _LOG.error("a commit failed, too, as the run was ended", exc_info=another)
                errors.append(another)
        return errors

    def _judge(self, ended: Future[None]) -> None:
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
    with failing(run):
        run.commit(catalog)


@contextmanager
def failing(run: TopicRun) -> Iterator[None]:
    try:
        yield
    except ContextError as error:
        run.fail(error)
