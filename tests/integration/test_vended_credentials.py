"""Credentials vended for minutes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archiver.archive.topic_archive import open_archive
from archiver.config import load_config
from archiver.engine.runner import Result, Task, TaskOutcome
from archiver.ingest.job import ArchiveJob
from catalog.iceberg.vended import CredentialSource
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.choice import of_the_stacks_own_catalog
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.storage.vending_store import ExpiringStore, Vending, vending_store

pytestmark = [
    pytest.mark.integration,
    of_the_stacks_own_catalog("the catalog that vends is a SeaweedFS of its own"),
]

PARTITIONS = 2
RECORDS = 6_000
USES = 1
"""Requests that a token holds for: an upload of a file as small as these takes one, so that each second is denied."""


@pytest.fixture(scope="module")
def vending(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vending]:
    folder = tmp_path_factory.mktemp("vending")
    with vending_store(folder, access_key=stack.access_key, secret_key=stack.secret_key) as servers:
        yield servers


@pytest.fixture
def store(vending: Vending) -> Iterator[ExpiringStore]:
    yield vending.store
    vending.store.uses = None
    vending.store.ended.clear()


class ShortTasks(InlineEngine):
    """Tasks end with their first piece, so that a backlog takes several waves."""

    slots = 1

    def run_tasks(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[TaskOutcome[Result]]:
        short: list[Any] = [replace(task, budget_seconds=0.0) for task in tasks]  # type: ignore[type-var]
        yield from super().run_tasks(short, run)


class CutOff(InlineEngine):
    slots = 1

    def run_tasks(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[TaskOutcome[Result]]:
        yield from super().run_tasks([_cut_off(task) for task in tasks], run)


def _cut_off(task: Any) -> Any:
    nowhere = CredentialSource("kafka.orders", (("token", "x"), ("uri", "http://127.0.0.1:1")))
    objects = replace(task.target.objects, source=nowhere, attempts=1)
    return replace(task, target=replace(task.target, objects=objects))


def produced(stack: Stack, vending: Vending) -> tuple[Path, str]:
    topic = stack.topic(partitions=PARTITIONS)
    data = random.Random(1)
    records = [{"value": data.randbytes(3_000), "partition": number % PARTITIONS} for number in range(RECORDS)]
    stack.produce(topic, *records)
    config = stack.config(
        {topic: {"target_file_size": "1MiB"}},
        catalog=vending.catalog,
        kafka={"fetch.max.bytes": "3000000"},
    )
    return config, topic


def test_vended_credentials_are_temporary_and_for_one_table(stack: Stack, vending: Vending) -> None:
    config, topic = produced(stack, vending)
    ArchiveJob(load_config(config), [topic], engine=InlineEngine()).run_once()
    table = open_archive(load_config(config), topic).snapshot
    store = table.storage.objects
    assert store.source is not None
    assert store.seconds_left is not None
    assert 600 < store.seconds_left <= 3_600
    assert dict(store.properties)["s3.access-key-id"] != stack.access_key


def test_a_run_outlives_its_credentials_in_every_wave_and_task(
    stack: Stack, vending: Vending, store: ExpiringStore
) -> None:
    config, topic = produced(stack, vending)
    store.uses = USES
    report = ArchiveJob(load_config(config), [topic], engine=ShortTasks()).run_once()
    assert report.succeeded, report
    assert report.waves >= 3
    assert len(store.ended) >= 3
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)
    assert not list(load_config(config).archive.spool.rglob("*.parquet"))


def test_next_wave_continues_if_tasks_lack_the_catalog(stack: Stack, vending: Vending, store: ExpiringStore) -> None:
    config, topic = produced(stack, vending)
    store.uses = USES
    report = ArchiveJob(load_config(config), [topic], engine=CutOff()).run_once()
    assert report.succeeded, report
    assert report.waves >= 2
    assert from_archive(config, topic, PARTITIONS) == from_kafka(stack, topic, PARTITIONS)
    assert not list(load_config(config).archive.spool.rglob("*.parquet")), "the next wave fetched their records again"


def test_replay_outlives_its_credentials_within_a_file(stack: Stack, vending: Vending, store: ExpiringStore) -> None:
    config, topic = produced(stack, vending)
    assert ArchiveJob(load_config(config), [topic], engine=InlineEngine()).run_once().succeeded
    archive = open_archive(load_config(config), topic)
    store.expire()
    seen = []
    for batch in archive.records(0):
        seen += batch.column("value").to_pylist()
        store.expire()
    assert seen == [record.value for record in from_kafka(stack, topic, PARTITIONS) if record.partition == 0]
