"""A backlog in parallel failing tasks."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from random import Random

import pytest
from google.protobuf.wrappers_pb2 import StringValue

from archiver.config import load_config
from archiver.errors import ParseHalted
from archiver.ingest.events import JobEvent, JobObserver, WavePlanned
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.ingest.plan.ranges import PlannedRange
from archiver.observer import ignore
from catalog.model import FileState, StateCount
from catalog.registry import Registry
from tests.support.archive.readers import from_archive, from_kafka, wait_until_decided
from tests.support.engine.inline_engine import InlineEngine
from tests.support.engine.killed_jobs import archive, archive_by_spark
from tests.support.kafka.odd_records import produce_transactions
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

SMALL_TASKS = {"task_size": "60000B", "tasks_per_partition": 8}
RECORDS = 3_000


def produce(stack: Stack, topic: str, *, seed: int = 1, count: int = RECORDS) -> None:
    noise = Random(seed)
    messages = [{"key": b"%d" % number, "value": noise.randbytes(noise.randrange(250))} for number in range(count)]
    stack.produce(topic, *messages, batch_num_messages=7)


class Plans:
    def __init__(self) -> None:
        self.waves: list[list[PlannedRange]] = []

    def __call__(self, event: JobEvent) -> None:
        if isinstance(event, WavePlanned):
            self.waves.append([item for range_ in event.ranges.values() for item in range_])


def run(config: Path, observer: JobObserver = ignore) -> JobReport:
    return ArchiveJob(load_config(config), observer=observer, engine=InlineEngine()).run_once()


def states(config: Path) -> dict[FileState, StateCount]:
    with Registry(load_config(config).registry.dsn) as registry:
        (row,) = registry.topics.every()
        return registry.files.counts(row)


def test_pieces_are_the_whole_and_batches_stay_whole(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}}, archive=SMALL_TASKS)
    produce(stack, topic)
    produce_transactions(stack.bootstrap_servers, topic, 1)
    wait_until_decided(stack, topic, 1)
    plans = Plans()
    report = run(config, plans)
    assert report.succeeded, report
    assert len(plans.waves[0]) >= 4, "the backlog was not cut"
    assert report.topics[0].commits == report.waves
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
    table = stack.catalog().load_table(load_config(config).topic(topic).table)
    rows = [row["kafka"] for row in table.scan(selected_fields=("kafka",)).to_arrow().to_pylist()]
    assert all(row["batch_start"] <= row["offset"] <= row["batch_end"] for row in rows)
    assert states(config)[FileState.REJECTED].ranges == 0


def test_a_task_in_the_middle_that_halts_keeps_what_follows_out(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    schema = tmp_path / "text.proto"
    schema.write_text('syntax = "proto3"; package t; message Text { string value = 1; }')
    value = {"format": "protobuf", "message": "t.Text", "proto": str(schema)}
    config = stack.config({topic: {"value": value, "on_parse_error": "halt"}}, archive=SMALL_TASKS)
    noise = Random(3)
    messages = [{"value": StringValue(value=noise.randbytes(60).hex()).SerializeToString()} for _ in range(RECORDS)]
    messages[RECORDS // 2] = {"value": b"\x0a\x05x"}
    stack.produce(topic, *messages, batch_num_messages=7)

    ((partition, error),) = run(config).topics[0].failures
    assert (partition, type(error)) == (0, ParseHalted)
    assert error.context["offset"] == RECORDS // 2
    archived = from_archive(config, topic, 1)
    assert 0 < len(archived) <= RECORDS // 2
    assert [record.offset for record in archived] == list(range(len(archived)))
    assert states(config)[FileState.REJECTED].ranges > 0, "no task behind the bad one had finished"

    config.write_text(config.read_text().replace('"halt"', '"pass_through"'))
    assert run(config).succeeded
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


@pytest.mark.parametrize("passage", [3])
def test_a_kill_while_pieces_are_uploaded_loses_nothing(stack: Stack, passage: int) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}}, archive=SMALL_TASKS)
    produce(stack, topic)
    killed = archive(config, f"after_upload:kill@{passage}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    healed = archive(config)
    assert healed.returncode == 0, healed.stderr
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


@pytest.mark.slow
def test_workers_that_die_over_every_second_piece_only_cost_time(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}}, archive=SMALL_TASKS)
    produce(stack, topic)
    done = archive_by_spark(config, "before_upload:kill@2")
    for _ in range(5):
        if done.returncode == 0:
            break
        done = archive_by_spark(config, "before_upload:kill@2")
    assert done.returncode == 0, done.stderr
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


@pytest.mark.usefixtures("without_lease")
def test_two_archivers_cut_one_partition_at_once(stack: Stack) -> None:
    topic = stack.topic()
    configs = [stack.config({topic: {}}, archive=SMALL_TASKS | {"task_size": size}) for size in ("60000B", "43000B")]
    table, dsn = load_config(configs[0]).topic(topic).table, load_config(configs[0]).registry.dsn
    second = load_config(configs[1])
    text = configs[1].read_text().replace(second.topic(topic).table, table).replace(second.registry.dsn, dsn)
    configs[1].write_text(text)
    start = threading.Barrier(2)

    def work(config: Path) -> None:
        start.wait(60)
        run(config)

    for turn in range(3):
        produce(stack, topic, seed=turn)
        rivals = [threading.Thread(target=work, args=(config,)) for config in configs]
        for rival in rivals:
            rival.start()
        for rival in rivals:
            rival.join()
    assert run(configs[0]).succeeded
    assert from_archive(configs[0], topic, 1) == from_kafka(stack, topic, 1)
    assert states(configs[0])[FileState.REJECTED].ranges > 0, "they never met"
