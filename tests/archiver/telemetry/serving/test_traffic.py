from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from prometheus_client import CollectorRegistry

from archiver.errors import ConfigError
from archiver.telemetry.serving import AccessLog, Answered, Traffic, error_in


def done(**changes: Any) -> Answered:
    values = {"api": "Fetch", "version": 12, "client": "::1:5", "client_id": "me", "seconds": 0.02, "sent_bytes": 99}
    return Answered(**values | changes)


def test_requests_are_counted_by_api_and_error() -> None:
    registry = CollectorRegistry()
    traffic = Traffic(registry)
    for error in ("none", "none", "not_coordinator"):
        traffic.answered(done(error=error))
    traffic.partition_error("offset_out_of_range")
    value = registry.get_sample_value
    assert value("archiver_serve_requests_total", {"api": "Fetch", "error": "none"}) == 2
    assert value("archiver_serve_requests_total", {"api": "Fetch", "error": "not_coordinator"}) == 1
    assert value("archiver_serve_sent_bytes_total", {"api": "Fetch"}) == 297
    assert value("archiver_serve_request_seconds_bucket", {"api": "Fetch", "le": "0.025"}) == 3
    assert value("archiver_serve_partition_errors_total", {"error": "offset_out_of_range"}) == 1


def test_first_error_of_an_answer_is_found_anywhere() -> None:
    assert error_in({"error_code": ErrorCode.none}) == "none"
    assert error_in({"error_code": ErrorCode.not_coordinator, "members": ()}) == "not_coordinator"
    bad = {"partition_index": 0, "error_code": ErrorCode.unknown_topic_id}
    assert error_in({"topics": [{"partitions": [{"error_code": ErrorCode.none}, bad]}]}) == "unknown_topic_id"
    long = [{"error_code": ErrorCode.none}] * 100_000
    assert error_in({"topics": [{"partitions": long}] * 3}) == "none"


def test_access_log_has_a_line_per_request_across_rotation(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    log = AccessLog(path)
    with log:
        log.write(done(client_id="first\n"))
        while not path.exists() or not path.read_text():
            pass
        path.rename(tmp_path / "access.log.1")
        log.write(done(client_id="second", principal="User:me"))
    first = json.loads((tmp_path / "access.log.1").read_text())
    assert (first["api"], first["client_id"], first["sent_bytes"]) == ("Fetch", "first\n", 99)
    assert "principal" not in first
    assert json.loads(path.read_text())["principal"] == "User:me"
    assert log.left_out == 0


def test_a_share_of_requests_is_logged(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    with AccessLog(path, share=0.1) as log:
        for _ in range(2_000):
            log.write(done())
    assert 100 < len(path.read_text().splitlines()) < 300


def test_a_log_that_cannot_be_written_is_a_wrong_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"serve\.access_log"):
        AccessLog(tmp_path / "nowhere" / "access.log")
