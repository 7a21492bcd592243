"""Topics with records days apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from archiver.config import load_config
from archiver.errors import ObjectMissing
from archiver.storage.objects import ObjectStore
from archiver.upkeep.consent import GIVEN, Consent
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire, ExpireOptions
from archiver.upkeep.retire.report import TopicRetired
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import Seen, from_archive
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

START = 1_767_225_600_000
DAY = 86_400_000


def produce(stack: Stack, topic: str, numbers: range, *, day: int, partition: int = 0) -> None:
    records = ({"key": b"k%d" % n, "value": b"v%d" % n, "timestamp": START + day * DAY + n} for n in numbers)
    stack.produce(topic, *({"partition": partition, **record} for record in records))


def archived(stack: Stack, **settings: Any) -> tuple[Path, str]:
    topic = stack.topic()
    config = stack.config({topic: {"snapshot_retention": "0s", **settings}})
    for day in range(3):
        produce(stack, topic, range(day * 10, day * 10 + 10), day=day)
        archive_once(config)
    return config, topic


def expire(
    config: Path,
    topic: str,
    *,
    day: float = 0.0,
    limits: RetireLimits | None = None,
    consent: Consent = GIVEN,
    **options: Any,
) -> TopicRetired:
    job = Expire(
        load_config(config),
        (topic,),
        limits=limits,
        options=ExpireOptions(clock=lambda: (START + day * DAY) / 1_000, **options),
        engine=InlineEngine(),
        consent=consent,
    )
    (done,) = job.run().topics
    return done


def ranges_of(config: Path) -> list[tuple[Any, ...]]:
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        return connection.execute(
            "SELECT partition, start_offset, end_offset, path, rows, digest, expected_rows, erased_rows, lost_rows,"
            " retired_rows, id FROM files WHERE state = 'committed' ORDER BY 1, 2, part"
        ).fetchall()


def check(config: Path, topic: str, records: Sequence[Seen], *, partitions: int = 1) -> None:
    assert from_archive(config, topic, partitions) == list(records)
    report = RefillJob(load_config(config), topic, engine=InlineEngine()).run()
    assert report.mended == ()


def objects_left(config: Path, paths: Sequence[str]) -> list[str]:
    objects = ObjectStore.of(load_config(config).catalog)
    left = []
    for path in paths:
        try:
            objects.size(path)
        except ObjectMissing:
            continue
        left.append(path)
    return left
