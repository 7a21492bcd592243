"""Two commands with one `[metrics]`."""

from __future__ import annotations

import logging
from functools import partial
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from archiver.errors import ConfigError
from archiver.telemetry.health import Health
from archiver.telemetry.instruments import Instruments
from archiver.telemetry.listener import Listener
from archiver.telemetry.patient_listener import PatientListener
from tests.support.timing.eventually import eventually


def listener(host: str, port: int) -> Listener:
    return Listener(host, port, instruments=Instruments(), health=Health(stalled_after=60))


def test_taken_port_is_a_warning_and_is_taken_over(caplog: pytest.LogCaptureFixture) -> None:
    with listener("127.0.0.1", 0) as first:
        port = first.address[1]
        patient = PatientListener(partial(listener, "127.0.0.1", port), address=f"127.0.0.1:{port}", again=0.05)
        with caplog.at_level(logging.WARNING):
            patient.__enter__()
        assert f"127.0.0.1:{port} is taken" in caplog.text
    try:
        answer = eventually(
            lambda: urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10), "it listens", despite=(URLError,)
        )
        assert answer.status == 200
    finally:
        patient.__exit__()
    with listener("127.0.0.1", port):
        pass  # it was closed


def test_it_ends_although_the_port_stays_taken() -> None:
    with listener("127.0.0.1", 0) as first:
        port = first.address[1]
        with PatientListener(partial(listener, "127.0.0.1", port), address="a"):
            pass


def test_an_address_that_is_not_this_machines_stays_an_error() -> None:
    with (
        pytest.raises(ConfigError, match="can't listen on this address"),
        PatientListener(partial(listener, "203.0.113.1", 9464), address="a"),
    ):
        pass
