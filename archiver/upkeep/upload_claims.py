"""Claim what a long run has uploaded and not committed yet, again and again, so that it is not taken for orphans."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from catalog.errors import RegistryError
from catalog.model import TopicRow, file_name
from catalog.registry import Registry

RENEW_SECONDS: Final = 600.0


class UploadClaims:
    """The claims of one run. Call `keep` while work goes on: it renews claims that are due."""

    def __init__(self, registry: Registry, topic: TopicRow) -> None:
        self._registry = registry
        self._topic = topic
        self._names: set[str] = set()
        self._renewed = time.monotonic()

    @classmethod
    @contextmanager
    def of_run(cls, registry: Registry, topic: TopicRow) -> Iterator[UploadClaims]:
        """Claims until the block ends. Claims of a killed run expire when they are as old as orphans."""
        claims = cls(registry, topic)
        try:
            yield claims
        finally:
            if claims._names:
                with suppress(RegistryError):
                    registry.claims.forget(topic, sorted(claims._names))

    def keep(self, *paths: str) -> None:
        """Claim these files too."""
        fresh = {file_name(path) for path in paths} - self._names
        self._names |= fresh
        if self._names and time.monotonic() - self._renewed >= RENEW_SECONDS:
            fresh, self._renewed = self._names, time.monotonic()
        if fresh:
            self._registry.claims.renew(self._topic, sorted(fresh))
