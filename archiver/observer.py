"""Observers: functions that are told the events of a job while it works.

An observer never stops the job: one that raises is logged once and left out from then on (docs/adr/0036). All calls
come from the job's own thread, so an observer must return soon.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias, TypeVar

E = TypeVar("E")

Observer: TypeAlias = Callable[[E], None]
"""A function of one event of a kind of job."""

_LOG = logging.getLogger(__name__)


def ignore(event: object) -> None:
    """Observe nothing: what a job tells when nobody gave it an observer."""


def all_of(*observers: Observer[E]) -> Observer[E]:
    """One observer that tells every event to each of `observers` in turn. It never raises an Exception."""
    working = list(observers)

    def tell(event: E) -> None:
        for each in tuple(working):
            try:
                each(event)
            except Exception:  # noqa: BLE001 - logged, with its traceback
                working.remove(each)
                _LOG.exception(
                    "an observer failed at %s and is told nothing more; the work itself goes on: %s",
                    type(event).__name__,
                    getattr(each, "__qualname__", type(each).__qualname__),
                )

    return tell
