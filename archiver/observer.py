"""Observers: functions called with each event of a job.

An observer's error is logged once and ends its events, never the job (docs/adr/0036). Calls are serialized, and the
event's thread waits: return soon.
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


def ignore(event: object) -> None: ...


def all_of(*observers: Observer[E]) -> Observer[E]:
    """Never raises an Exception. Serializes threads.

    Events from within a call come before events of waiting threads.
    """
    working = list(observers)
    turn = threading.RLock()

    def tell(event: E) -> None:
        with turn:
            tell_each(event)

    def tell_each(event: E) -> None:
        for observer in tuple(working):
            try:
                observer(event)
            except Exception:  # noqa: BLE001 - it is logged with its traceback
                if observer in working:  # it may have failed before, inside this very call
                    working.remove(observer)
                _LOG.exception(
                    "an observer failed at %s and is told nothing more; the work itself goes on: %s",
                    type(event).__name__,
                    getattr(observer, "__qualname__", type(observer).__qualname__),
                )

    return tell
