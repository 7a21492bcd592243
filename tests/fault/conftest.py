"""The registry without its lease."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from catalog.model import TopicRow
from catalog.registry.leases import Leases


@pytest.fixture
def without_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(leases: Leases, topics: Sequence[TopicRow]) -> tuple[TopicRow, ...]:
        return ()

    monkeypatch.setattr(Leases, "take", take)
