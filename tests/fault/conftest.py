"""The registry without its lease, which saves double work and which correctness must never rest on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from catalog.model import TopicRow
from catalog.registry.leases import Leases


@pytest.fixture
def without_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every archiver is granted every topic."""

    def take(leases: Leases, topics: Sequence[TopicRow]) -> tuple[TopicRow, ...]:
        return ()

    monkeypatch.setattr(Leases, "take", take)
