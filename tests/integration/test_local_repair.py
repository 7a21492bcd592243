"""A damaged stack keeps its data."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pyarrow as pa
import pytest

from archiver.config import load_config
from archiver.errors import LocalStackError
from archiver.local import LocalStack, state
from archiver.local.process import find
from archiver.local.stack import PARTS
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

TABLE = "repair.numbers"
ROWS = pa.table({"n": pa.array(range(1000), pa.int64())})


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    local = LocalStack(tmp_path_factory.mktemp("a stack, with: signs"))
    try:
        local.up()
        yield local
    finally:
        local.down()


@pytest.fixture
def topic(local: LocalStack, tmp_path: Path) -> str:
    stack = Stack(local.up(), tmp_path)
    topic = stack.topic()
    stack.produce(topic, *({"value": str(number).encode()} for number in range(100)))
    with psycopg.connect(stack.postgres_dsn) as connection:
        connection.execute("create table if not exists notes (name text)")
        connection.execute("insert into notes values (%s)", (topic,))
    catalog = stack.catalog()
    catalog.create_namespace_if_not_exists("repair")
    catalog.create_table(f"repair.{topic}", ROWS.schema).append(ROWS)
    return topic


def assert_intact(local: LocalStack, topic: str, scratch: Path) -> None:
    stack = Stack(local.endpoints, scratch)
    consumer = stack.consumer()
    try:
        consumer.subscribe([topic])
        values = [message.value() for message in consumer.consume(100, timeout=30)]
    finally:
        consumer.close()
    assert values == [str(number).encode() for number in range(100)]
    with psycopg.connect(stack.postgres_dsn) as connection:
        assert connection.execute("select count(*) from notes where name = %s", (topic,)).fetchone() == (1,)
    assert stack.catalog().load_table(f"repair.{topic}").scan().to_arrow().sort_by("n") == ROWS


def kill(local: LocalStack, *names: str) -> None:
    loaded = state.load(local.directory)
    assert loaded is not None
    for name in names:
        server = find(loaded.processes[name])
        assert server is not None
        os.kill(server.pid, signal.SIGKILL)


def test_after_a_kill_of_everything(local: LocalStack, topic: str, tmp_path: Path):
    before = local.endpoints
    kill(local, *(part.name for part in PARTS))
    assert not local.status().ready
    begun = time.monotonic()
    assert set(local.ensure().started) == {"kafka", "seaweedfs", "postgres"}
    assert time.monotonic() - begun < 40
    assert local.endpoints == before
    assert_intact(local, topic, tmp_path)


def test_after_down_and_up(local: LocalStack, topic: str, tmp_path: Path):
    assert set(local.down()) == {"kafka", "seaweedfs", "postgres"}
    assert {part.health for part in local.status().parts} == {"stopped"}
    assert local.down() == ()
    local.up()
    assert_intact(local, topic, tmp_path)


@pytest.mark.parametrize(
    "name",
    [pytest.param("postgres", marks=pytest.mark.slow), "kafka", pytest.param("seaweedfs", marks=pytest.mark.slow)],
)
def test_one_missing_part_is_started_again_alone(local: LocalStack, topic: str, name: str, tmp_path: Path):
    kill(local, name)
    assert local.ensure().started == (name,)
    assert_intact(local, topic, tmp_path)


def test_a_server_that_hangs_is_replaced(local: LocalStack, topic: str, tmp_path: Path):
    loaded = state.load(local.directory)
    assert loaded is not None
    os.kill(loaded.processes["seaweedfs"].pid, signal.SIGSTOP)
    assert {part.name: part.health for part in local.status().parts}["seaweedfs"] == "not answering"
    assert local.ensure().started == ("seaweedfs",)
    assert_intact(local, topic, tmp_path)


@pytest.mark.slow
def test_ports_taken_meanwhile_are_given_up(local: LocalStack, topic: str, tmp_path: Path):
    config = local.directory / "archiver.toml"
    local.down()
    before = local.endpoints
    config.write_text(config.read_text() + '\n[topics."mine"]\n')
    taken = [int(address.rpartition(":")[2].partition("/")[0]) for address in _addresses(local)]
    thieves = [socket.create_server(("127.0.0.1", port)) for port in taken]
    try:
        after = local.up()
    finally:
        for thief in thieves:
            thief.close()
    assert after.bootstrap_servers != before.bootstrap_servers
    assert after.s3_endpoint != before.s3_endpoint
    loaded = load_config(config)
    assert loaded.kafka["bootstrap.servers"] == after.bootstrap_servers
    assert loaded.catalog == after.catalog_properties
    assert loaded.registry.dsn == after.postgres_dsn
    assert loaded.topic("mine").name == "mine"
    assert_intact(local, topic, tmp_path)


def _addresses(local: LocalStack) -> list[str]:
    ends = local.endpoints
    return [ends.bootstrap_servers, ends.s3_endpoint, ends.catalog_uri, ends.postgres_dsn.rpartition("@")[2]]


def test_servers_whose_mark_was_lost_are_ended_first(local: LocalStack, topic: str, tmp_path: Path):
    path = local.directory / state.FILE_NAME
    document = json.loads(path.read_text())
    lost = {mark["pid"] for mark in document["processes"].values()}
    document["processes"] = {}
    path.write_text(json.dumps(document))
    local.up()
    assert not any(_lives(pid) for pid in lost)
    assert_intact(local, topic, tmp_path)


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_reused_pid_in_postgres_lock_file_is_no_obstacle(local: LocalStack, topic: str, tmp_path: Path):
    kill(local, "postgres")
    lock = local.directory / "postgres" / "postmaster.pid"
    lines = lock.read_text().splitlines()
    with subprocess.Popen(["/bin/sleep", "120"]) as sleeper:
        try:
            lock.write_text("\n".join([str(sleeper.pid), *lines[1:]]) + "\n")
            local.up()
        finally:
            sleeper.kill()
    assert_intact(local, topic, tmp_path)


def test_two_commands_at_once_make_one_stack(tmp_path: Path):
    command = [sys.executable, "-c", "import sys; from archiver.local import LocalStack; LocalStack(sys.argv[1]).up()"]
    both = [subprocess.Popen([*command, str(tmp_path / "d")]) for _ in range(2)]
    local = LocalStack(tmp_path / "d")
    try:
        assert [child.wait(120) for child in both] == [0, 0]
        assert local.status().ready
        running = [process for process in psutil.process_iter() if _stands_in(process, tmp_path / "d" / "kafka")]
        assert len(running) == 1
    finally:
        local.down()


def _stands_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.cwd() == str(folder)
    except psutil.Error:
        return False


def test_no_stack_is_not_an_error_until_its_endpoints_are_wanted(tmp_path: Path):
    local = LocalStack(tmp_path / unique("none"))
    assert local.down() == ()
    assert local.status().parts == ()
    assert not local.status().ready
    with pytest.raises(LocalStackError, match="archiver local up"):
        _ = local.endpoints
