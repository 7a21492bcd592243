"""Jobs that start before their servers."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pytest

from archiver.config import load_config
from archiver.errors import ConfigError
from archiver.ingest.events import JobEvent, JobWaiting, RunFinished
from archiver.ingest.job import ArchiveJob
from catalog.errors import TableTaken
from tests.support.archive.job_runs import read, run
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration


def hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def forward(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    hang_up(source)
    hang_up(target)


class Door:
    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._server = socket.socket()
        self._server.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def open(self) -> None:
        self._server.listen()
        self._start(self._serve)

    def _start(self, work: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                ours, _ = self._server.accept()
                self._connections.append(ours)
                theirs = socket.create_connection(self._target)
                self._connections.append(theirs)
                self._start(forward, ours, theirs)
                self._start(forward, theirs, ours)

    def close(self) -> None:
        hang_up(self._server)
        for connection in tuple(self._connections):
            hang_up(connection)
        for thread in tuple(self._threads):
            thread.join(30)
        for connection in (self._server, *self._connections):
            connection.close()


@contextmanager
def door(address: str) -> Iterator[Door]:
    host, _, port = address.rpartition(":")
    made = Door((host, int(port)))
    try:
        yield made
    finally:
        made.close()


class Followed:
    def __init__(self, config: Path) -> None:
        self.events: list[JobEvent] = []
        self.stop = threading.Event()
        self._changed = threading.Condition()
        job = ArchiveJob(load_config(config), (), self._take, engine=InlineEngine())
        self._thread = threading.Thread(target=lambda: job.run_every(0.2, self.stop))

    def _take(self, event: JobEvent) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def until(self, holds: Any) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(holds, self.events)), timeout=120), self.events

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


def waits_for(on: str) -> Any:
    return lambda event: isinstance(event, JobWaiting) and event.on == on


def archived(records: int) -> Any:
    return lambda event: isinstance(event, RunFinished) and event.report.records == records


def refused(topic: str) -> Any:
    def is_refused(event: JobEvent) -> bool:
        if not isinstance(event, RunFinished):
            return False
        return any(outcome.topic == topic and isinstance(outcome.error, TableTaken) for outcome in event.report.topics)

    return is_refused


def test_a_repeating_job_waits_for_kafka_then_for_postgres(stack: Stack) -> None:
    topic = stack.topic()
    stack.produce(topic, {"value": b"x"})
    config = stack.config({topic: {}})
    dsn = load_config(config).registry.dsn
    postgres = dsn.split("@")[1].split("/")[0]
    with door(stack.bootstrap_servers.split(",")[0]) as to_kafka, door(postgres) as to_postgres:
        text = config.read_text().replace(postgres, to_postgres.address)
        text = text.replace(json.dumps(stack.bootstrap_servers), json.dumps(to_kafka.address))
        config.write_text(text.replace("[kafka]", '[kafka]\n"socket.connection.setup.timeout.ms" = 500'))
        with Followed(config) as job:
            job.until(waits_for("Kafka"))
            to_kafka.open()
            job.until(waits_for("Postgres"))
            to_postgres.open()
            job.until(archived(1))
        waits = [event.on for event in job.events if isinstance(event, JobWaiting)]
        assert waits == ["Kafka", "Postgres"], "each reason is told once"


def test_a_repeating_job_starts_without_the_catalog(stack: Stack) -> None:
    topic = stack.topic()
    stack.produce(topic, {"value": b"x"})
    config = stack.config({topic: {}})
    uri = load_config(config).catalog["uri"]
    catalog = uri.split("//")[1]
    with door(catalog) as to_catalog:
        config.write_text(config.read_text().replace(catalog, to_catalog.address))
        with Followed(config) as job:
            job.until(lambda event: isinstance(event, RunFinished) and not event.report.succeeded)
            to_catalog.open()
            job.until(archived(1))


def test_a_pattern_that_matches_nothing_yet_is_waited_for(stack: Stack) -> None:
    prefix = unique("later")
    config = stack.config({f"{prefix}[.-]*": {}})
    config.write_text("\n".join(line for line in config.read_text().splitlines() if not line.startswith('"table"')))
    with pytest.raises(ConfigError, match="No topic of the cluster matches"):
        run(config)
    with Followed(config) as job:
        job.until(waits_for("topics"))
        stack.topic(name=f"{prefix}.one")
        stack.produce(f"{prefix}.one", {"value": b"x"})
        job.until(archived(1))
        stack.topic(name=f"{prefix}-one")  # its table would be that of the first
        job.until(refused(f"{prefix}-one"))
        before = len(job.events)
        job.until(lambda event: refused(f"{prefix}-one")(event) and event not in job.events[:before])
    assert len([event for event in job.events if isinstance(event, JobWaiting)]) == 1


def test_a_schema_that_cannot_be_read_stops_its_topic_alone(stack: Stack) -> None:
    broken, fine = stack.topic(), stack.topic()
    stack.produce(fine, {"value": b"x"})
    proto = stack.scratch / f"{unique('broken')}.proto"
    proto.write_text("message {")
    config = stack.config({broken: {"value": {"format": "protobuf", "message": "M", "proto": str(proto)}}, fine: {}})
    report = run(config)
    (wrong,) = [topic for topic in report.topics if topic.error]
    assert (wrong.topic, type(wrong.error)) == (broken, ConfigError)
    assert str(proto) in str(wrong.error)
    assert report.records == 1
    assert read(stack, config, fine).num_rows == 1
    with Followed(config) as job:
        job.until(lambda event: isinstance(event, RunFinished) and not event.report.succeeded)
        proto.write_text('syntax = "proto3"; message M { int32 a = 1; }')
        job.until(lambda event: isinstance(event, RunFinished) and event.report.succeeded)


def test_two_jobs_with_one_address_for_metrics(stack: Stack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        topic = stack.topic()
        config = stack.config({topic: {}}, metrics={"listen": address})
        command = [str(Path(sys.executable).with_name("archiver")), "archive", "--once", "--config", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    assert f"{address} is taken" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_repeating_job_with_its_code(stack: Stack, number: signal.Signals, code: int) -> None:
    config = stack.config({stack.topic(): {}})
    command = [str(Path(sys.executable).with_name("archiver")), "archive", "--every", "1s", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        for line in job.stdout:
            if json.loads(line)["event"] == "finished":
                break
        job.send_signal(number)
        _, errors = job.communicate(timeout=120)
    assert job.returncode == code, errors
