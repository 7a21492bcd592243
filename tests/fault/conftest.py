"""The registry without its lease, which saves double work and which correctness must never rest on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from catalog.model import TopicRow
from catalog.registry import Registry


@pytest.fixture
def without_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every archiver is granted every topic."""

    @contextmanager
    def lease(registry: Registry, topic: TopicRow) -> Iterator[bool]:
        yield True

    monkeypatch.setattr(Registry, "lease", lease)
