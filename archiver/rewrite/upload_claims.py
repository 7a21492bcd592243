"""Claim a long run's uncommitted uploads, so that they don't count as orphans."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from catalog.errors import RegistryError
from catalog.model import TopicRow, file_name, new_id
from catalog.registry import Registry

RENEW_SECONDS: Final = 600.0


class UploadClaims:
    """Call `keep` regularly: it renews due claims."""

    def __init__(self, registry: Registry, topic: TopicRow, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._topic = topic
        self._run = new_id()
        self._names: set[str] = set()
        self._clock = clock
        self._renewed = clock()

    @classmethod
    @contextmanager
    def of_run(
        cls, registry: Registry, topic: TopicRow, *, is_noted: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> Iterator[UploadClaims]:
        """Claims of a killed run expire at the age of orphans.

        `is_noted=False` is for a run without changes.
        """
        claims = cls(registry, topic, clock=clock)
        if is_noted:
            registry.claims.note_run(topic, claims._run)
        try:
            yield claims
        finally:
            with suppress(RegistryError):
                if claims._names:
                    registry.claims.forget(topic, sorted(claims._names))
                if is_noted:
                    registry.claims.forget_run(topic, claims._run)

    def keep(self, *paths: str) -> None:
        fresh = {file_name(path) for path in paths} - self._names
        self._names |= fresh
        if self._clock() - self._renewed >= RENEW_SECONDS:
            fresh, self._renewed = self._names, self._clock()
            self._registry.claims.note_run(self._topic, self._run)
        if fresh:
            self._registry.claims.renew(self._topic, sorted(fresh))
