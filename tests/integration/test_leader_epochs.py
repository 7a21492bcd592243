"""Elections on a real broker: what a new leader's log keeps is archived on, what it lost or wrote anew is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from archiver.config import load_config
from archiver.ingest.job import ArchiveJob
from tests.inline_engine import InlineEngine
from tests.integration.ingesting import numbered, places, read, run, run_well
from tests.integration.own_broker import OwnBroker, own_broker
from tests.stack import Stack, unique

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def broker(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBroker]:
    with own_broker(stack, tmp_path_factory.mktemp("own-broker")) as running:
        yield running


def begun(stack: Stack, topic: str, numbers: range) -> Any:
    """A producer whose transaction is open, its records in the log."""
    producer = stack.producer(transactional_id=unique("writer"))
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in numbers:
        producer.produce(topic, value=b"%d" % number)
    producer.flush(30)
    return producer


def test_a_transaction_that_outlives_its_leader(broker: OwnBroker) -> None:
    stack, topic = broker.stack, broker.stack.topic()
    config = stack.config({topic: {}})
    producer = begun(stack, topic, range(10))
    broker.restart()
    producer.commit_transaction(60)
    assert run_well(config).records == 10
    assert run_well(config).records == 0
    stack.produce(topic, *numbered(range(3)))
    assert run_well(config).records == 3
    assert places(read(stack, config, topic)) == [(0, n) for n in (*range(10), *range(11, 14))]
    offsets = stack.catalog().load_table(load_config(config).topic(topic).table).properties["archiver.offsets"]
    assert offsets == '{"0":[14,2]}'
