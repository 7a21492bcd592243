"""The start of a partition is decided once."""

from __future__ import annotations

import pytest

from catalog.registry import Registry
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration


def test_the_first_decision_stays(stack: Stack) -> None:
    with Registry(stack.database()) as registry:
        orders = registry.topics.register(cluster_id="c", topic="orders", topic_id=None, table="kafka.orders")
        second = registry.topics.register(cluster_id="c", topic="other", topic_id=None, table="kafka.other")
        assert registry.starts.decide(orders) == {}
        assert registry.starts.decide(orders, {0: 7, 1: 1 << 62}) == {0: 7, 1: 1 << 62}
        assert registry.starts.decide(orders, {0: 9, 2: 0}) == {0: 7, 1: 1 << 62, 2: 0}
        assert registry.starts.decide(second) == {}
        assert registry.starts.decide(orders, {4: 1}, pending={3: 12}) == {0: 7, 1: 1 << 62, 2: 0, 4: 1}
        assert registry.starts.pending(orders) == {3: 12}
        assert registry.starts.first_log_starts(orders, {0: 5}) == {0: 5}
        assert registry.starts.first_log_starts(orders, {0: 9, 1: 1}) == {0: 5, 1: 1}
        assert registry.starts.decide(orders) == {0: 7, 1: 1 << 62, 2: 0, 4: 1}, "each has its own place"
