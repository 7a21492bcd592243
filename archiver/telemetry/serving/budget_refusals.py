"""Refusals by budget."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry

from archiver.telemetry.metrics import counter

_LOG = logging.getLogger(__name__)
_LOGGED_EVERY: Final = 60.0
_MOST_OWNERS: Final = 1000


class BudgetRefusals:
    """Use it from the event loop."""

    def __init__(
        self, registry: CollectorRegistry | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._logged: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._count = counter("serve_over_budget", registry or CollectorRegistry())

    def reached(self, owner: str, budget: str) -> None:
        """Logged once a minute per owner and budget."""
        self._count.labels(budget).inc()
        now = self._clock()
        if now - self._logged.get((owner, budget), float("-inf")) < _LOGGED_EVERY:
            return
        self._logged[owner, budget] = now
        self._logged.move_to_end((owner, budget))
        if len(self._logged) > _MOST_OWNERS:
            self._logged.popitem(last=False)
        _LOG.warning("%.200s is refused: it has taken what it may (`%s` in [[serve.quotas]])", owner, budget)
