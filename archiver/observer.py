"""Observers: functions that are called with each event of a job while it works.

An observer never stops the job. If one raises, this is logged once, and it gets no more events (docs/adr/0036). Calls
come one at a time, each from the thread that did what the event is about, which waits: so an observer must return soon.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeAlias, TypeVar

E = TypeVar("E")

Observer: TypeAlias = Callable[[E], None]
"""A function that takes one event of a kind of job."""

_LOG = logging.getLogger(__name__)


def ignore(event: object) -> None:
    """Do nothing with an event. Jobs use this if nobody gave them an observer."""


def all_of(*observers: Observer[E]) -> Observer[E]:
    """Make one observer that calls `observers` in turn with every event. It never raises an Exception.

    Threads take turns with it. What an observer itself tells within a call comes before what others wait to tell.
    """
    working = list(observers)
    turn = threading.RLock()

    def tell(event: E) -> None:
        with turn:
            tell_each(event)

    def tell_each(event: E) -> None:
        for each in tuple(working):
            try:
                each(event)
            except Exception:  # noqa: BLE001 - it is logged with its traceback
                if each in working:  # it may have failed before, inside this very call
                    working.remove(each)
                _LOG.exception(
                    "an observer failed at %s and is told nothing more; the work itself goes on: %s",
                    type(event).__name__,
                    getattr(each, "__qualname__", type(each).__qualname__),
                )

    return tell
