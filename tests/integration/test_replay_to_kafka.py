"""`archiver replay --to-kafka`: the archive's records in a topic."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from archiver.kafka.broker import BrokerClient
from archiver.kafka.fetch import log_reader
from archiver.upkeep.retire.cut import RetireLimits
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import Seen, from_archive, from_kafka, wait_until_decided
from tests.support.archive.retirements import expire
from tests.support.kafka import odd_records
from tests.support.kafka.group_commits import commit, committed_by
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

PARTITIONS = 3


def replay(config: Path, topic: str, *arguments: object) -> Result:
    return CliRunner().invoke(app, ["replay", topic, "--config", str(config), *map(str, arguments)])


def moved(config: Path, topic: str, target: str, *arguments: object) -> dict[str, Any]:
    result = replay(config, topic, "--to-kafka", target, "--progress-topic", f"progress-of-{target}", *arguments)
    assert result.exit_code == 0, result.output
    report, finished = map(json.loads, result.stdout.splitlines()[-2:])
    assert report["event"] == "transferred"
    return {**report, "seconds": finished["seconds"]}


def refused(config: Path, topic: str, *arguments: object) -> str:
    result = replay(config, topic, *arguments)
    assert result.exit_code == 2, result.output
    error: dict[str, Any] = json.loads(result.stderr.splitlines()[-1])["error"]
    return f"{error['message']} {error['context']}"


def copied(stack: Stack, target: str) -> list[Seen]:
    wait_until_decided(stack, target, PARTITIONS)
    return from_kafka(stack, target, PARTITIONS)


def content(records: list[Seen]) -> list[tuple[Any, ...]]:
    """Omit offsets. Records without a time have create time in the target."""
    return [(record.partition, record.timestamp, record.key, record.value, record.headers) for record in records]


def seen_by_source(records: list[Seen]) -> dict[tuple[int, int], Seen]:
    return {(record.partition, record.offset): record for record in records}


@pytest.fixture
def archived(stack: Stack) -> tuple[Path, str]:
    topic = stack.topic(PARTITIONS)
    stack.produce(
        topic,
        *(
            {
                "key": b"k%d" % (number % 7),
                "value": b"%d" % number,
                "partition": number % PARTITIONS,
                "timestamp": 1_000 * number + 1,
            }
            for number in range(3_000)
        ),
    )
    config = stack.config({topic: {}})
    archive_once(config, topic)
    return config, topic


def test_everything_that_a_broker_serves_arrives(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic(PARTITIONS, {"max.message.bytes": "67108864"})
    noise = random.Random(7)
    bootstrap = stack.bootstrap_servers
    odd_records.produce_odd_records(bootstrap, topic, PARTITIONS)
    odd_records.produce_batch_sizes(bootstrap, topic, PARTITIONS, [noise.randbytes(n) for n in range(60)], seed=1)
    odd_records.produce_transactions(bootstrap, topic, PARTITIONS)
    odd_records.produce_extreme_times(bootstrap, topic, PARTITIONS)
    odd_records.produce_large(bootstrap, topic, PARTITIONS, 6, seed=2)
    config = stack.config({topic: {}})
    archive_once(config, topic)
    target, file = unique("copy"), tmp_path / "map.jsonl"

    small = stack.topic(PARTITIONS, {"message.timestamp.before.max.ms": "86400000", "max.message.bytes": "500"})
    refusal = refused(config, topic, "--progress-topic", f"progress-of-{small}", "--to-kafka", small)
    assert "nothing was sent" in refusal
    assert "larger, the first with" in refusal
    assert "set its message.timestamp.before.max.ms to 9223372036854775807" in refusal
    assert from_kafka(stack, small, PARTITIONS) == []
    report = moved(config, topic, target, "--create", "--offset-map", file)

    source, copy = from_kafka(stack, topic, PARTITIONS), copied(stack, target)
    assert report["records"] == len(source)
    assert content(source) == content(copy)
    by_source, by_target = seen_by_source(source), seen_by_source(copy)
    places = [
        ((line["partition"], line["source"] + i), (line["partition"], line["target"] + i))
        for line in map(json.loads, file.read_text().splitlines())
        for i in range(line["count"])
    ]
    assert {origin for origin, _ in places} == by_source.keys()
    assert {replica for _, replica in places} == by_target.keys()
    assert len(places) == len(source)
    assert all(content([by_source[origin]]) == content([by_target[replica]]) for origin, replica in places)


def test_what_a_client_library_could_not_send_arrives(stack: Stack) -> None:
    topic = stack.topic(1)
    odd_records.produce_binary_names(stack.bootstrap_servers, topic)
    with odd_records.kafka_python_producer(stack.bootstrap_servers) as producer:
        producer.send(topic, value=b"the beginning of time", partition=0, timestamp_ms=0).get(timeout=30)
    config = stack.config({topic: {}})
    archive_once(config, topic)
    target = unique("copy")

    moved(config, topic, target, "--create")

    def rows(name: str) -> list[tuple[Any, ...]]:
        with BrokerClient({"bootstrap.servers": stack.bootstrap_servers}) as brokers:
            end = brokers.list_offsets(name, [0], "latest_stable")[0]
            pieces = [*log_reader(brokers, name, None)(0, 0, end)]
        return [
            (
                row["timestamp"],
                row["key"],
                row["value"],
                [(header["key"], header["value"]) for header in row["headers"]],
            )
            for piece in pieces
            for row in piece.records.to_pylist()
        ]

    assert 0 in [timestamp for timestamp, *_ in rows(target)]
    assert rows(topic) == rows(target)


def test_a_second_run_moves_only_what_is_new(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    target = unique("copy")
    first = moved(config, topic, target, "--create")
    assert (first["records"], first["resumed"]) == (3_000, False)
    again = moved(config, topic, target)
    assert (again["records"], again["resumed"]) == (0, True)
    stack.produce(topic, *({"value": b"new", "partition": 1} for _ in range(10)))
    archive_once(config, topic)
    last = moved(config, topic, target)
    assert last["records"] == 10
    assert content(from_kafka(stack, topic, PARTITIONS)) == content(copied(stack, target))


def test_records_retired_before_they_were_moved_stop_a_transfer(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    target = unique("copy")
    assert moved(config, topic, target, "--create", "--to", 100)["records"] == 100 * PARTITIONS
    expire(config, topic, limits=RetireLimits(offset=400), rows=True)

    result = replay(config, topic, "--to-kafka", target, "--progress-topic", f"progress-of-{target}")
    assert result.exit_code == 1, result.output
    error = json.loads(result.stderr.splitlines()[-1])["error"]
    context = error["context"]
    assert (error["kind"], context["transfer"]) == ("RecordsRetired", f"{topic}-to-{target}")
    assert (context["position"], context["first_offset"]) == ("100", "400")
    assert len(copied(stack, target)) == 100 * PARTITIONS

    rest = unique("rest")
    assert moved(config, topic, rest, "--create")["records"] == 600 * PARTITIONS, "it begins after what was retired"


def test_a_part_is_moved(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    target = unique("copy")
    moved(
        config,
        topic,
        target,
        "--create",
        "--from",
        100,
        "--to",
        900,
        "--where",
        "key in ('k1', 'k2') and partition != 2",
    )
    expected = [
        record
        for record in from_archive(config, topic, PARTITIONS)
        if 100 <= record.offset < 900 and record.key in {b"k1", b"k2"} and record.partition != 2
    ]
    assert content(expected) == content(copied(stack, target))
    assert "another --where" in refused(
        config, topic, "--to-kafka", target, "--progress-topic", f"progress-of-{target}", "--from", 100
    )


def test_a_limited_rate_is_kept(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    report = moved(config, topic, unique("copy"), "--create", "--rate", "1000")
    assert 2.0 < report["seconds"] < 30


def test_bad_settings_fail_before_any_work(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    progress = unique("progress")
    to = ("--progress-topic", progress, "--to-kafka")
    assert "no such topic" in refused(config, topic, *to, unique("absent"))
    assert "lacks partitions" in refused(config, topic, *to, stack.topic(PARTITIONS - 1))
    append_time = stack.topic(PARTITIONS, {"message.timestamp.type": "LogAppendTime"})
    assert "time of their arrival" in refused(config, topic, *to, append_time)
    assert "archived topic itself" in refused(config, topic, *to, topic)
    assert "--rate" in refused(config, topic, *to, unique("copy"), "--rate", "fast")
    assert "only without --to-kafka" in refused(config, topic, *to, unique("copy"), "--limit", "5")
    assert "only with --to-kafka" in refused(config, topic, "-o", "x", "--create")
    deleting = stack.topic(1)
    assert "cleanup.policy" in refused(
        config, topic, "--to-kafka", stack.topic(PARTITIONS), "--progress-topic", deleting
    )
    filled = stack.topic(PARTITIONS)
    stack.produce(filled, {"value": b"mine"})
    assert "holds records already" in refused(config, topic, *to, filled)
    moved(config, topic, filled, "--append")
    assert len(copied(stack, filled)) == 3_001


def test_recreated_target_is_not_the_old_one(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    target = stack.topic(PARTITIONS)
    moved(config, topic, target)
    stack.delete_topic(target)
    stack.topic(PARTITIONS, name=target)
    said = refused(config, topic, "--to-kafka", target, "--progress-topic", f"progress-of-{target}")
    assert "made again" in said


def test_a_target_made_again_during_the_run_stops_it(
    stack: Stack, archived: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from archiver.kafka.transactional_writer import TransactionalWriter

    config, topic = archived
    target = stack.topic(PARTITIONS)
    commit_really = TransactionalWriter.commit
    commits = []

    def replaced(self: TransactionalWriter) -> None:
        commit_really(self)
        commits.append(self)
        if len(commits) == 2:  # the first one tells only that the transfer has begun
            stack.delete_topic(target)
            stack.topic(PARTITIONS, name=target)

    monkeypatch.setattr(TransactionalWriter, "commit", replaced)
    result = replay(config, topic, "--to-kafka", target, "--transfer", unique("transfer"))
    assert result.exit_code == 1, result.output
    assert json.loads(result.stderr.splitlines()[-1])["error"]["kind"] == "TargetReplaced"


def test_group_that_reads_foreign_records_in_the_target_stays(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    group, target = unique("group"), stack.topic(PARTITIONS)
    stack.produce(target, *({"value": b"mine", "partition": 0} for _ in range(10)))
    commit(stack, group, topic, {0: 20, 1: 20})
    commit(stack, group, target, {0: 4})
    transfer = ("--to-kafka", target, "--append", "--transfer", unique("transfer"), "--translate-groups", group)
    result = replay(config, topic, *transfer)
    assert result.exit_code == 1
    (report,) = json.loads(result.stdout.splitlines()[-2])["groups"]
    assert (report["behind"], list(report["offsets"])) == ([0], ["1"])
    assert committed_by(stack, group, target, PARTITIONS)[0] == 4
    commit(stack, group, target, {0: 10})
    assert replay(config, topic, *transfer).exit_code == 0
    assert committed_by(stack, group, target, PARTITIONS)[0] > 10


def test_groups_go_on_at_the_same_record(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    group, elsewhere = unique("group"), unique("group")
    committed = {0: 0, 1: 417, 2: 1_000}
    commit(stack, group, topic, committed)
    commit(stack, elsewhere, stack.topic(1), {0: 0})
    target = unique("copy")

    report = moved(config, topic, target, "--create", "--from", "50", "--translate-groups", "all")

    (translated,) = [item for item in report["groups"] if item["group"] == group]
    assert elsewhere not in [item["group"] for item in report["groups"]]
    assert translated["problem"] is None
    places = committed_by(stack, group, target, PARTITIONS)
    assert {str(item): offset for item, offset in places.items()} == translated["offsets"]
    source = [item for item in from_kafka(stack, topic, PARTITIONS) if item.offset >= 50]
    copy = copied(stack, target)
    for partition, offset in committed.items():
        left = [item for item in source if item.partition == partition and item.offset >= offset]
        rest = [item for item in copy if item.partition == partition and item.offset >= places[partition]]
        assert content(left) == content(rest)

    commit(stack, group, target, {1: places[1] + 5})
    again = moved(config, topic, target, "--from", "50", "--translate-groups", group)
    assert again["groups"][0]["ahead"] == [1]
    assert committed_by(stack, group, target, PARTITIONS)[1] == places[1] + 5


def test_a_group_beyond_what_was_moved_is_told(stack: Stack, archived: tuple[Path, str]) -> None:
    config, topic = archived
    group, target = unique("group"), unique("copy")
    commit(stack, group, topic, {0: 900, 1: 10})
    groups = ("--translate-groups", group, "--translate-groups", "nobody")
    transfer = ("--to-kafka", target, "--create", "--transfer", unique("transfer"))
    result = replay(config, topic, *transfer, "--to", "500", *groups)
    assert result.exit_code == 1
    report = json.loads(result.stdout.splitlines()[-2])
    assert not json.loads(result.stdout.splitlines()[-1])["succeeded"]
    first, nobody = report["groups"]
    assert first["problem"] is None
    assert (first["waiting"], first["offsets"]) == ([0], {"1": 10})
    assert "no offset of the source topic" in nobody["problem"]["message"]


def test_a_transfer_that_another_process_took_over_stops(
    stack: Stack, archived: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from archiver.kafka.transactional_writer import TransactionalWriter
    from archiver.republish.transfer import TRANSACTIONAL_ID

    config, topic = archived
    target, name = unique("copy"), unique("transfer")
    write = TransactionalWriter.write

    def overtaken(self: TransactionalWriter, to: str, batches: Any) -> dict[int, int]:
        if to == target:
            with BrokerClient({"bootstrap.servers": stack.bootstrap_servers}) as brokers:
                brokers.cluster_id()
                TransactionalWriter(brokers, f"{TRANSACTIONAL_ID}{name}").open()
        return write(self, to, batches)

    monkeypatch.setattr(TransactionalWriter, "write", overtaken)
    result = replay(config, topic, "--to-kafka", target, "--create", "--transfer", name)
    assert result.exit_code == 1
    assert json.loads(result.stderr.splitlines()[-1])["error"]["kind"] == "TransferTaken"
    monkeypatch.undo()
    moved_again = replay(config, topic, "--to-kafka", target, "--transfer", name)
    assert moved_again.exit_code == 0, moved_again.output
    assert content(from_kafka(stack, topic, PARTITIONS)) == content(copied(stack, target))
