"""Elections on a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import TopicPartition
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.errors import ArchiverError, CorruptBatch, DataLoss, LogTruncated
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.ingest.topic.acceptance import AcceptedLosses
from archiver.kafka import PartitionFetcher
from tests.fault.soak.log_cut import cut_log
from tests.support.archive.job_runs import archive_once, numbered, places, read, run
from tests.support.engine.inline_engine import InlineEngine
from tests.support.kafka.flipped_batch import flip_batch
from tests.support.kafka.own_broker import OwnBroker, own_broker
from tests.support.kafka.redpanda_proxy import redpanda_proxy
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Elected:
    broker: OwnBroker
    topics: dict[str, str]
    configs: dict[str, Path]

    @property
    def stack(self) -> Stack:
        return self.broker.stack

    def topic(self, story: str) -> tuple[Path, str]:
        return self.configs[story], self.topics[story]


@pytest.fixture(scope="module")
def elected(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elected]:
    with (
        own_broker(stack, tmp_path_factory.mktemp("own-broker")) as broker,
        redpanda_proxy(broker.stack.bootstrap_servers) as redpanda,
    ):
        own = broker.stack
        topics = {story: own.topic() for story in ("outlives", "regrown", "covered", "shorter", "flipped", "repeated")}
        configs = {story: own.config({topic: {}}) for story, topic in topics.items()}
        configs["repeated"] = own.config({topics["repeated"]: {}}, kafka=redpanda.options)
        writer = own.begun(topics["outlives"], *numbered(range(10)))
        for story in ("regrown", "shorter", "repeated"):
            own.produce(topics[story], *({"value": b"%d" % number} for number in range(20)), batch_size=100)
        own.produce(topics["covered"], *numbered(range(10)))
        own.begun(topics["covered"], *numbered(range(10, 15))).abort_transaction(60)
        for story in ("regrown", "covered", "shorter", "repeated"):
            archive_once(configs[story])

        def cut() -> None:
            for story, before in (("regrown", 12), ("covered", 10), ("shorter", 12), ("repeated", 12)):
                cut_log(broker.log_folder(topics[story]), before)

        broker.restart(cut)
        writer.commit_transaction(60)
        for story in ("regrown", "repeated"):
            own.produce(topics[story], *({"value": b"other %d" % number} for number in range(30)))
        own.produce(topics["covered"], *({"value": b"real %d" % number} for number in range(10)))
        yield Elected(broker, topics, configs)


def offsets_of(stack: Stack, config: Path, topic: str) -> str:
    return str(stack.catalog().load_table(load_config(config).topic(topic).table).properties["archiver.offsets"])


def set_back(stack: Stack, config: Path, topic: str, *, offsets: str, epoch: int) -> None:
    """Restore the epochs of the time when only kept records counted."""
    table = stack.catalog().load_table(load_config(config).topic(topic).table)
    with table.transaction() as transaction:
        transaction.set_properties({"archiver.offsets": offsets})
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute("UPDATE files SET leader_epoch = %s", (epoch,))


def accepting(config: Path) -> JobReport:
    return ArchiveJob(load_config(config), accepts=AcceptedLosses(gaps=True), engine=InlineEngine()).run_once()


def error_of(report: JobReport) -> ArchiverError:
    ((partition, error),) = report.topics[0].failures
    assert partition == 0
    assert isinstance(error, ArchiverError)
    return error


def problem_of(config: Path) -> dict[str, Any] | None:
    done = CliRunner().invoke(app, ["status", "--json", "--config", str(config)])
    (row,) = json.loads(done.stdout)["topics"]
    problem: dict[str, Any] | None = row["partitions"][0]["problem"]
    return problem


def test_a_transaction_that_outlives_its_leader(elected: Elected) -> None:
    stack, (config, topic) = elected.stack, elected.topic("outlives")
    assert archive_once(config).records == 10
    assert offsets_of(stack, config, topic) == '{"0":[11,2]}', "the marker's epoch counts"
    assert archive_once(config).records == 0

    set_back(stack, config, topic, offsets='{"0":[11,0]}', epoch=0)
    assert problem_of(config) is None
    stack.produce(topic, *numbered(range(3)))
    assert archive_once(config).records == 3
    assert places(read(stack, config, topic)) == [(0, n) for n in (*range(10), *range(11, 14))]
    assert offsets_of(stack, config, topic) == '{"0":[14,2]}', "a table with an epoch too small heals"

    set_back(stack, config, topic, offsets='{"0":[14,0]}', epoch=0)
    stack.produce(topic, *numbered(range(5)))
    position = TopicPartition(topic, 0, 17)
    stack.admin.delete_records([position])[position].result(30)
    error = error_of(run(config))
    assert isinstance(error, DataLoss)
    assert error.context["lost"] == "[14, 17)"
    assert accepting(config).succeeded, "a gap is accepted, whatever the epochs said"
    assert places(read(stack, config, topic))[-3:] == [(0, 13), (0, 17), (0, 18)]


@pytest.mark.parametrize("how", [run, accepting])
def test_a_log_written_anew_is_named_offset_by_offset(elected: Elected, how: Callable[[Path], JobReport]) -> None:
    config, topic = elected.topic("regrown")
    before = places(read(elected.stack, config, topic))
    error = error_of(how(config))
    assert isinstance(error, DataLoss)
    assert error.context["differs"] == "other records than archived: [12, 20)"
    assert error.context["diverging"] == "[12, 20)"
    assert places(read(elected.stack, config, topic)) == before
    problem = problem_of(config)
    assert problem is not None
    assert problem["context"]["differs"] == error.context["differs"]


def test_repeated_epochs_lead_to_the_same_offsets(elected: Elected) -> None:
    """Redpanda names the requested epoch, whether or not the log has it."""
    error = error_of(run(elected.topic("repeated")[0]))
    assert isinstance(error, DataLoss)
    assert error.context["differs"] == "other records than archived: [12, 20)"


@pytest.mark.parametrize("how", [run, accepting])
def test_records_where_only_aborted_ones_were_covered_are_told(
    elected: Elected, how: Callable[[Path], JobReport]
) -> None:
    error = error_of(how(elected.topic("covered")[0]))
    assert isinstance(error, DataLoss)
    assert error.context["differs"] == "in the log and not archived: [10, 16)"


def test_a_log_that_is_shorter_now(elected: Elected) -> None:
    error = error_of(run(elected.topic("shorter")[0]))
    assert isinstance(error, DataLoss)
    assert error.context["differs"] == "gone from the log: [12, 20)"


def test_a_leader_tells_a_fetch_that_its_log_has_another_past(elected: Elected) -> None:
    _, topic = elected.topic("regrown")
    options = {"bootstrap.servers": elected.stack.bootstrap_servers}
    with PartitionFetcher(options, topic, None, 0) as fetcher:
        diverged = fetcher.fetch(20, last_epoch=0)
        assert (diverged.epoch_end, diverged.data) == (12, b"")
        same = fetcher.fetch(12, last_epoch=0)
        assert same.epoch_end is None
        assert same.data
        with pytest.raises(LogTruncated, match=r"\[12, 20\)") as caught:
            list(fetcher.batches(20, 30, last_epoch=0))
        assert caught.value.retryable
        assert sum(piece.records.num_rows for piece in fetcher.batches(0, 30, max_bytes=100, last_epoch=-1)) == 42


def test_a_corrupt_batch_is_recorded_as_lost_with_consent(elected: Elected) -> None:
    """One bit is wrong on disk. Kafka serves it unchanged; the header's last offset is wrong as well."""
    stack, (config, topic) = elected.stack, elected.topic("flipped")
    for start in range(0, 50, 10):
        stack.produce(topic, *numbered(range(start, start + 10)))
    assert flip_batch(elected.broker.log_folder(topic), 10) == 10
    error = error_of(run(config))
    assert isinstance(error, CorruptBatch)
    assert (error.context["base_offset"], error.context["next_offset"]) == (10, 10)
    assert places(read(stack, config, topic)) == [(0, n) for n in range(10)], "everything before it is archived"
    shown = CliRunner().invoke(app, ["status", "--config", str(config)])
    assert (shown.exit_code, "CorruptBatch" in shown.stdout) == (1, True)
    problem = problem_of(config)
    assert problem is not None
    assert (problem["kind"], problem["context"]["offset"]) == ("CorruptBatch", "10")

    assert (
        ArchiveJob(load_config(config), accepts=AcceptedLosses(unreadable=True), engine=InlineEngine())
        .run_once()
        .succeeded
    )
    assert places(read(stack, config, topic)) == [(0, n) for n in (*range(10), *range(20, 50))]
    assert problem_of(config) is None
    done = json.loads(CliRunner().invoke(app, ["status", "--json", "--config", str(config)]).stdout)
    assert done["topics"][0]["lost_offsets"] == 10
    stack.produce(topic, *numbered(range(5)))
    assert archive_once(config).records == 5
