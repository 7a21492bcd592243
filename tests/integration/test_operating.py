"""`archiver archive --every` as a service."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.servers.serving import serving
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration

ARCHIVER = Path(sys.executable).with_name("archiver")


class Collector:
    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.headers: set[str | None] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.headers.add(self.headers.get("x-token"))
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans += scope.spans
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)

    @contextmanager
    def running(self) -> Iterator[str]:
        with serving(self.server):
            yield f"http://127.0.0.1:{self.server.server_address[1]}/v1/traces"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(url: str) -> tuple[int, str]:
    try:
        with urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except URLError:
        return 0, ""


def counted(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_service_is_seen_from_outside(stack: Stack) -> None:
    topic = stack.topic(2)
    collector, address = Collector(), f"127.0.0.1:{free_port()}"
    with collector.running() as endpoint:
        config = stack.config(
            {topic: {"max_lag": "0s"}},
            metrics={"listen": address},
            traces={"endpoint": endpoint, "headers": "x-token=abc"},
        )
        stack.produce(topic, *({"value": b"%d" % number, "partition": number % 2} for number in range(600)))
        command = [str(ARCHIVER), "archive", "--config", str(config), "--every", "1s"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
            try:
                eventually(lambda: get(f"http://{address}/health")[0] == 200)
                eventually(
                    lambda: counted(get(f"http://{address}/metrics")[1]).get(("archiver_records_total", topic)) == 600.0
                )
                metrics = counted(get(f"http://{address}/metrics")[1])
                assert metrics["archiver_lag_offsets", *sorted(("0", topic))] == 0.0
                assert metrics["archiver_next_offset", *sorted(("1", topic))] == 300.0
                assert metrics["archiver_step_seconds_total", *sorted(("commit", topic))] > 0.0
                stack.delete_topic(topic)
                eventually(lambda: get(f"http://{address}/health/ready")[0] == 503)
                status, body = get(f"http://{address}/health/live")
                assert (status, any("UnknownTopic" in reason for reason in json.loads(body)["reasons"])) == (200, True)
            finally:
                job.send_signal(signal.SIGTERM)
                output, errors = job.communicate(timeout=60)
    assert job.returncode == 1, errors
    events = [json.loads(line) for line in output.splitlines()]
    task = next(event for event in events if event["event"] == "task_finished")
    assert {"topic", "planned", "covered", "source_bytes", "file_bytes", "seconds"} <= task.keys()
    assert list(task["steps"]) == ["fetch", "decode", "write", "upload"]
    assert all(0.0 < seconds <= task["seconds"] for seconds in task["steps"].values())
    assert {event["step"] for event in events if event["event"] == "step_finished"} == {"stage", "commit"}
    names = [span.name for span in collector.spans]
    assert {"wave", "task", "fetch", "decode", "write", "upload", "stage", "commit"} <= set(names)
    assert collector.headers == {"abc"}
