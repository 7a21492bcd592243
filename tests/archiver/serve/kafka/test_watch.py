"""Metrics of a running endpoint."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from archiver.config.model import ServeSection
from archiver.errors import StorageUnavailable
from archiver.serve.groups import CommittedOffsets
from archiver.serve.kafka.watch import Watch
from catalog.registry import GroupOffset
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.free_ports import free_port
from tests.support.servers.served_lake import ServedLake, Wire, request

ORDERS = "orders"


def asked(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def numbers(port: int) -> dict[tuple[str, ...], float]:
    _, text = asked(port, "/metrics")
    return {
        (sample.name.removeprefix("archiver_serve_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_and_health_of_a_server(tmp_path: Path) -> None:
    port = free_port()
    lake = archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)
    with ServedLake(lake, watch=Watch(ServeSection(metrics=f"127.0.0.1:{port}"))) as endpoint:
        with Wire(endpoint.port) as wire:
            for _ in range(2):
                wire.ask(request(3, 9, topics=None))
            values = {"topic": ORDERS, "partition": 0, "fetch_offset": 0, "max_bytes": 1 << 20}
            more = {"partition_max_bytes": 1 << 20, "session_id": 0, "session_epoch": -1, "forgotten_topics_data": ()}
            for _ in range(2):
                wire.ask(request(1, 12, **values, **more))
            wire.ask(request(10, 2, key_type=0, key="g"))
            offsets: CommittedOffsets = {(ORDERS, 0): GroupOffset(topic_id=endpoint.topics.open[0].topic_id, offset=4)}
            endpoint.watch.offsets.saw("g", offsets)
            metrics: dict[Any, float] = numbers(port)
        assert metrics["requests_total", "Metadata", "none"] == 2
        assert metrics["requests_total", "Fetch", "none"] == 2
        assert metrics["sent_bytes_total", "Fetch"] > 100
        assert (metrics["cache_misses_total",], metrics["cache_hits_total",]) == (1, 1), "the first was waited for"
        assert metrics["decode_seconds_total",] > 0
        assert metrics["connections",] == 1
        assert (metrics["nodes",], metrics["leased",]) == (1, 1)
        assert metrics["end_offset", "0", ORDERS] == 10
        assert metrics["group_lag", "g", "0", ORDERS] == 6
        assert asked(port, "/ready")[0] == 200
        status, text = asked(port, "/health")
        assert (status, json.loads(text)["status"]) == (200, "ok")
        endpoint.topics.open[0].trouble = StorageUnavailable("the catalog is away")
        status, text = asked(port, "/health")
        assert (status, json.loads(text)["status"]) == (200, "degraded")
        assert "the catalog is away" in json.loads(text)["reasons"][0]
