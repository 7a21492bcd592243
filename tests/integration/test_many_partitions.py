"""One job over hundreds of partitions."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from archiver.config import load_config
from archiver.ingest.events import JobEvent, WavePlanned
from archiver.ingest.job import ArchiveJob
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

WIDE, NARROW = 600, 3


class Waves:
    def __init__(self) -> None:
        self.waves: list[Counter[tuple[str, int]]] = []

    def __call__(self, event: JobEvent) -> None:
        if isinstance(event, WavePlanned):
            ranges = event.ranges.items()
            self.waves.append(Counter((topic, range_.partition) for topic, planned in ranges for range_ in planned))


def test_everybody_has_a_turn_and_each_record_is_there_once(stack: Stack) -> None:
    wide, narrow = stack.topic(WIDE), stack.topic(NARROW)
    limits = {"max_commit_interval": "100s", "task_size": "100000B"}  # 200 tasks a wave on two slots
    config = stack.config({wide: {}, narrow: {}}, archive=limits)
    noise = Random(1)
    stack.produce(wide, *({"value": b"%d" % number, "partition": number % WIDE} for number in range(2 * WIDE)))
    stack.produce(narrow, *({"value": noise.randbytes(1_000), "partition": 0} for _ in range(1_500)))
    observer = Waves()
    report = ArchiveJob(load_config(config), observer=observer, engine=InlineEngine()).run_once()
    assert report.succeeded, report.topics
    assert {topic.topic: topic.records for topic in report.topics} == {wide: 2 * WIDE, narrow: 1_500}
    first = observer.waves[0]
    assert first[narrow, 0] > 1, "the heavy partition was not cut"
    assert sum(count for (topic, _), count in first.items() if topic == wide) >= 150
    turns = Counter(partition for wave in observer.waves for (topic, partition) in wave if topic == wide)
    assert max(turns.values()) == 1
    assert len(turns) == WIDE
    for topic, records in ((wide, 2 * WIDE), (narrow, 1_500)):
        table = stack.catalog().load_table(load_config(config).topic(topic).table)
        rows = table.scan(selected_fields=("kafka.partition", "kafka.offset")).to_arrow().column("kafka").to_pylist()
        assert len({(row["partition"], row["offset"]) for row in rows}) == len(rows) == records
