"""Metrics and health over HTTP."""

from __future__ import annotations

import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from archiver.errors import ConfigError
from archiver.telemetry.health import Health
from archiver.telemetry.instruments import Instruments
from archiver.telemetry.listener import REQUEST_SECONDS, WORKERS, Listener


@pytest.fixture
def instruments() -> Instruments:
    return Instruments()


@pytest.fixture
def health() -> Health:
    return Health(stalled_after=60)


@pytest.fixture
def url(instruments: Instruments, health: Health) -> Iterator[str]:
    with Listener("127.0.0.1", 0, instruments=instruments, health=health) as listener:
        host, port = listener.address
        yield f"http://{host}:{port}"


def get(url: str) -> tuple[int, str]:
    try:
        with urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_metrics_are_prometheus_text(url: str, instruments: Instruments) -> None:
    instruments.records.labels("orders").inc(7)
    status, text = get(f"{url}/metrics")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert status == 200
    assert [(sample.labels, sample.value) for sample in families["archiver_records"].samples][:1] == [
        ({"topic": "orders"}, 7.0)
    ]
    assert all(name.startswith("archiver_") for name in families)


def test_health_says_why(url: str, health: Health) -> None:
    for path, status in (("/health/live", 200), ("/health/ready", 503), ("/health", 503)):
        code, body = get(url + path)
        assert (code, json.loads(body)["reasons"]) == (status, ["The job has not begun yet"])
    health.began()
    for path in ("/health/live", "/health/ready", "/health"):
        assert get(url + path)[0] == 200


def test_other_paths_name_those_there_are(url: str) -> None:
    assert get(f"{url}/nowhere") == (404, "/, /metrics, /health, /health/live, /health/ready\n")


def test_an_address_in_use_is_a_wrong_configuration(url: str, instruments: Instruments, health: Health) -> None:
    with pytest.raises(ConfigError, match="can't listen on") as error:
        Listener("127.0.0.1", int(url.rpartition(":")[2]), instruments=instruments, health=health)
    assert error.value.context["key"] == "metrics.listen"


@pytest.fixture
def impatient(instruments: Instruments, health: Health) -> Iterator[tuple[str, int]]:
    with Listener("127.0.0.1", 0, instruments=instruments, health=health, request_seconds=0.5) as listener:
        yield listener.address


def test_who_sends_a_request_byte_by_byte_is_dropped(impatient: tuple[str, int]) -> None:
    with socket.create_connection(impatient, timeout=10) as slow:
        began = time.monotonic()
        with suppress(OSError):
            for byte in itertools.cycle(b"GET /metrics HTTP/1.1\r\nX: y" + b"y" * 1_000):
                slow.sendall(bytes([byte]))
                time.sleep(0.05)
                if time.monotonic() - began > 5:
                    break
        assert time.monotonic() - began < 5


def test_the_silent_keep_nobody_waiting_and_cost_no_threads(url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    before = threading.active_count()
    with ExitStack() as closing:
        for _ in range(10 * WORKERS):
            closing.enter_context(socket.create_connection((host, int(port)), timeout=10))
        began = time.monotonic()
        status, _ = get(f"{url}/health/live")
        assert status == 200
        assert time.monotonic() - began < REQUEST_SECONDS
        assert threading.active_count() <= before + WORKERS


def test_it_ends_at_once_whoever_is_connected(instruments: Instruments, health: Health) -> None:
    with Listener("127.0.0.1", 0, instruments=instruments, health=health) as listener:
        silent = socket.create_connection(listener.address, timeout=10)
        time.sleep(0.1)
        began = time.monotonic()
    assert time.monotonic() - began < REQUEST_SECONDS / 2
    silent.close()


def test_the_first_page_shows_health_and_topics(url: str, instruments: Instruments, health: Health) -> None:
    instruments.records.labels("orders<1>").inc(7)
    instruments.lag_offsets.labels("orders<1>", "0").set(5)
    instruments.lag_offsets.labels("orders<1>", "1").set(6)
    status, page = get(url)
    assert status == 200
    assert "Live, but not ready" in page
    assert "<li>The job has not begun yet</li>" in page
    assert '<td>orders&lt;1&gt;</td><td class="number">7</td><td class="number">11</td>' in page
    health.began()
    health.ended(())
    assert "All is well" in get(f"{url}/")[1]
    assert get(f"{url}/nowhere")[0] == 404


def test_first_page_names_topics_that_wait_for_a_person(url: str, instruments: Instruments, health: Health) -> None:
    health.began()
    health.ended(())
    instruments.expire_needs_consent.labels("orders").set(1)
    instruments.schema_change_waits.labels("clicks").set(1)
    instruments.expire_needs_consent.labels("readings").set(0)
    page = get(f"{url}/")[1]
    assert "All is well" not in page
    assert "Archiving continues, and something waits for you" in page
    assert "<li>orders: retirement waits for consent: `archiver expire orders --yes`</li>" in page
    assert "<li>clicks: a schema change waits for approval: `archiver schema approve clicks`</li>" in page
    assert "<li>readings" not in page
