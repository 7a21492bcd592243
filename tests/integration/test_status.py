"""`archiver status`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.topics.log_bounds import LogBounds
from tests.support.archive.job_runs import archive_once, without_registry
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

PARTITIONS = 2


def invoke(config: Path, *arguments: str) -> Any:
    form = [] if "--json" in arguments else ["--no-json"]
    return CliRunner().invoke(app, ["status", "--config", str(config), *form, *arguments], terminal_width=200)


def as_json(config: Path, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
    done = invoke(config, "--json", *arguments)
    assert done.exit_code == exit_code, done.output
    return {topic["topic"]: topic for topic in json.loads(done.stdout)["topics"]}


def ends(stack: Stack, topic: str, isolation: str) -> list[int]:
    consumer = stack.consumer(isolation_level=isolation)
    try:
        places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        return [consumer.get_watermark_offsets(target, 10)[1] for target in places]
    finally:
        consumer.close()


@contextmanager
def open_transaction(stack: Stack, topic: str, name: str) -> Iterator[None]:
    producer = stack.begun(topic, *({"value": b"%d" % number, "partition": 1} for number in range(5)), name=name)
    yield
    producer.abort_transaction(30)


def test_where_partitions_stand_and_who_holds_them_back(stack: Stack) -> None:
    topic, second = stack.topic(PARTITIONS), stack.topic()
    config = stack.config({topic: {}, second: {}})
    stack.produce(topic, *({"value": b"x", "partition": number % 2} for number in range(20)))
    archive_once(config, topic, engine=InlineEngine())
    old = int((time.time() - 3_600) * 1000)
    stack.produce(topic, *({"value": b"late", "partition": 0, "timestamp": old} for _ in range(7)))
    name = unique("writer")
    with open_transaction(stack, topic, name):
        stack.produce(topic, {"value": b"behind the transaction", "partition": 1})
        row = as_json(config)[topic]
        text = invoke(config, topic, "--partitions")
        assert text.exit_code == 0
        stable, ending = ends(stack, topic, "read_committed"), ends(stack, topic, "read_uncommitted")

    partitions = row["partitions"]
    assert [partition["archived_to"] for partition in partitions] == [10, 10]
    assert [partition["last_stable"] for partition in partitions] == stable == [17, 10]
    assert [partition["high_watermark"] for partition in partitions] == ending == [17, 16]
    assert [partition["lag_records"] for partition in partitions] == [7, 0]
    assert 3_590 < partitions[0]["lag_seconds"] < 3_900
    assert partitions[1]["lag_seconds"] is None
    assert partitions[0]["open_transactions"] == []
    ((holder),) = partitions[1]["open_transactions"]
    assert (holder["transactional_id"], holder["first_offset"]) == (name, 10)
    assert row["files"]["committed"] == {
        "ranges": 2,
        "rows": 20,
        "size_bytes": row["files"]["committed"]["size_bytes"],
        "files": 2,
    }
    assert (row["lag_records"], row["lost_offsets"], row["problem"]) == (7, 0, None)
    assert name in text.stdout
    assert "7 records behind" in text.stdout
    assert second not in text.stdout, "one topic was asked for"


def test_what_never_was_archived_is_all_behind(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    stack.produce(topic, *({"value": b"x", "partition": 0} for _ in range(3)))
    partitions = as_json(config)[topic]["partitions"]
    assert [(partition["archived_to"], partition["lag_records"]) for partition in partitions] == [(None, 3), (None, 0)]
    assert stack.catalog().table_exists(f"kafka.{topic}") is False


def test_what_latest_leaves_out_is_not_behind(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {"start_from": "latest"}})
    stack.produce(topic, *({"value": b"x", "partition": 0} for _ in range(30)))
    assert as_json(config)[topic]["lag_records"] == 0, "nothing is decided yet, and nothing of it would be archived"
    archive_once(config, topic, engine=InlineEngine())
    stack.produce(topic, *({"value": b"x", "partition": 0} for _ in range(3)))
    partitions = as_json(config)[topic]["partitions"]
    assert [(partition["archived_to"], partition["lag_records"]) for partition in partitions] == [(None, 3), (None, 0)]


def test_a_table_that_is_as_it_was_needs_no_arrow(stack: Stack) -> None:
    """A waiting batch is checked with numpy; rows were checked before, with Arrow."""
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    stack.produce(topic, *({"value": b"x", "partition": 0} for _ in range(3)))
    archive_once(config, topic, engine=InlineEngine())
    assert as_json(config)[topic]["lag_records"] == 0
    stack.produce(topic, {"value": b"x", "partition": 0})
    archive_once(config, topic, engine=InlineEngine())
    stack.produce(topic, *({"value": b"x", "partition": 0} for _ in range(2)))
    run = """
import sys
from archiver.cli import main
try:
    main()
finally:
    print(*(name for name in ("numpy", "pandas", "pyarrow", "pyiceberg") if name in sys.modules), file=sys.stderr)"""
    arguments = ["status", "--json", "--config", str(config)]
    done = subprocess.run(
        [sys.executable, "-c", run, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr.split()) == (0, ["numpy", "pyiceberg"]), done.stderr
    (row,) = json.loads(done.stdout)["topics"]
    assert row["lag_records"] == 2
    assert row["partitions"][0]["lag_seconds"] is not None


def test_what_is_staged_is_told(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    stack.produce(topic, *({"value": b"x", "partition": 0} for _ in range(3)))
    monkeypatch.setenv("ARCHIVER_FAULT", "before_commit:raise")
    with pytest.raises(AssertionError):
        archive_once(config, topic, engine=InlineEngine())
    monkeypatch.delenv("ARCHIVER_FAULT")
    row = as_json(config)[topic]
    first = row["partitions"][0]
    assert (first["archived_to"], first["staged_to"], first["staged_files"]) == (None, 3, 1)
    assert row["files"]["uploaded"]["ranges"] == 1


def test_a_lost_registry_is_a_problem(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    stack.produce(topic, *({"value": b"x", "partition": 0} for _ in range(3)))
    archive_once(config, topic, engine=InlineEngine())
    lost = without_registry(stack, config, with_journal=True)
    row = as_json(lost, exit_code=1)[topic]
    assert row["problem"]["kind"] == "RegistryBehind"
    assert "registry rebuild" in row["problem"]["message"]
    text = invoke(lost)
    assert (text.exit_code, "behind;" in text.stdout) == (1, False)
    assert f"{topic}: RegistryBehind" in text.stdout
    assert as_json(config)[topic]["problem"] is None


def test_a_catalog_without_the_table_is_a_problem(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}})
    stack.produce(topic, *({"value": b"x", "partition": 0} for _ in range(3)))
    archive_once(config, topic, engine=InlineEngine())
    stack.catalog().drop_table(load_config(config).topic(topic).table)
    assert as_json(config, exit_code=1)[topic]["problem"]["kind"] == "RegistryBehind"


def test_an_unknown_topic_is_an_error_and_no_table(stack: Stack) -> None:
    config = stack.config({"not_there": {}})
    for arguments in ((), ("--partitions",)):
        text = invoke(config, "not_there", *arguments)
        assert text.exit_code == 1
        assert "UnknownTopic" in text.stdout
        assert "archived" not in text.stdout.replace("archived.", "")
    assert "no section" in invoke(config, "other").stderr.lower()


def test_many_topics_are_looked_at_together(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [stack.topic() for _ in range(5)]
    config = stack.config({topic: {} for topic in topics})
    for topic in topics[:3]:
        stack.produce(topic, {"value": b"x"})
    archive_once(config, *topics[:3], engine=InlineEngine())
    stack.produce(topics[0], {"value": b"y"}, {"value": b"z"})
    alone: list[str] = []
    monkeypatch.setattr(LogBounds, "ask", lambda topic, *_: alone.append(topic))
    rows = as_json(config)
    assert not alone, "the logs of all topics are asked about at once"
    assert [rows[topic]["lag_records"] for topic in topics] == [2, 0, 0, 0, 0]
    assert [rows[topic]["files"]["committed"]["rows"] for topic in topics] == [1, 1, 1, 0, 0]
    lines = [line for line in invoke(config).stdout.splitlines() if line.startswith("topic_")]
    assert len(lines) == len(topics)
    assert "2" in next(line for line in lines if line.startswith(topics[0])).split()


def test_a_loss_is_named_and_exits_with_1(stack: Stack) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}, "no_such_topic": {}})
    stack.produce(topic, *({"value": b"x", "partition": 0} for _ in range(10)))
    archive_once(config, topic, engine=InlineEngine())
    stack.produce(topic, *({"value": b"x", "partition": 0} for _ in range(10)))
    position = TopicPartition(topic, 0, 15)
    stack.admin.delete_records([position])[position].result(30)
    rows = as_json(config, exit_code=1)
    problem = rows[topic]["partitions"][0]["problem"]
    assert (problem["kind"], problem["context"]["lost"]) == ("DataLoss", "[10, 15)")
    assert rows["no_such_topic"]["problem"]["kind"] == "UnknownTopic"
    text = invoke(config, topic)
    assert text.exit_code == 1
    assert "[10, 15)" in text.stdout
