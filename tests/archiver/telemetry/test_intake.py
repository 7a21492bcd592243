"""Metrics and health of an intake server."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from archiver.intake.events import GroupAppended, IntakeEvent, TurnFailed, TurnWritten
from archiver.intake.log_thread import LogThread
from archiver.telemetry.intake import IntakeHealth, IntakeInstruments, TopicNumbers
from archiver.telemetry.listener import Listener
from tests.support.intake.batches import batch_of
from tests.support.intake.logs import opened_log
from tests.support.intake.lossy_disk import LossyDisk


def numbers(*, ended: str | None = None, problem: str | None = None) -> TopicNumbers:
    return TopicNumbers(
        topic="t", next_offsets={1: 7}, waiting_bytes=5, disk_bytes=64, segments=2, ended=ended, problem=problem
    )


def test_events_are_counted() -> None:
    instruments = IntakeInstruments(lambda: [numbers()], lambda: 9)
    for _ in range(2):
        instruments(GroupAppended(topic="t", batches=3, refused=1, rows=20, size_bytes=100, seconds=0.004))
    instruments(TurnWritten(topic="t", rows=40, files=2, file_bytes=300, write_seconds=0.2, seconds=0.4))
    instruments(TurnFailed(topic="t"))
    text = instruments.text().decode()
    for line in (
        'archiver_flight_batches_total{topic="t"} 6.0',
        'archiver_flight_refused_batches_total{topic="t"} 2.0',
        'archiver_flight_rows_total{topic="t"} 40.0',
        'archiver_flight_append_seconds_bucket{le="0.005",topic="t"} 2.0',
        'archiver_flight_upload_seconds_bucket{le="0.25",topic="t"} 1.0',
        'archiver_flight_turn_failures_total{topic="t"} 1.0',
        'archiver_flight_next_offset{partition="1",topic="t"} 7.0',
        'archiver_flight_segments_total{topic="t"} 2.0',
        'archiver_flight_log_ended{topic="t"} 0.0',
        "archiver_flight_unacknowledged_bytes 9.0",
    ):
        assert line in text.splitlines()


def test_a_log_reports_its_groups() -> None:
    events: list[IntakeEvent] = []
    thread = LogThread(opened_log(LossyDisk()), name="t", observer=events.append)
    thread.append(batch_of("a", 0, {0: [b"x", b"y"]})).result(10)
    assert thread.append(batch_of("a", 5, {0: [b"x"]})).exception(10) is not None
    thread.close()
    groups = [event for event in events if isinstance(event, GroupAppended)]
    assert sum(group.batches for group in groups) == 2
    assert [sum(group.rows for group in groups), sum(group.refused for group in groups)] == [2, 1]


@pytest.mark.parametrize(
    ("topic", "live", "ready", "reasons"),
    [
        (numbers(), True, True, ()),
        (numbers(problem="the catalog is away"), True, True, ("t: the catalog is away",)),
        (numbers(ended="the disk failed"), False, False, ("t: the disk failed",)),
    ],
)
def test_health(topic: TopicNumbers, *, live: bool, ready: bool, reasons: tuple[str, ...]) -> None:
    health = IntakeHealth(lambda: [topic])
    assert not health.report().ready
    assert health.report().live
    health.ready()
    report = health.report()
    assert (report.live, report.ready, report.reasons) == (live, ready, reasons)


def test_a_stopping_server_is_live() -> None:
    topics = [numbers(ended="the server stops taking in rows", problem="the catalog is away")]
    health = IntakeHealth(lambda: topics)
    health.ready()
    assert not health.report().live
    health.stop()
    report = health.report()
    assert (report.live, report.ready) == (True, False)
    assert report.reasons == ("The server stops", "t: the catalog is away")


def test_an_ended_log_is_not_live_over_http() -> None:
    topics = [numbers(ended="the disk failed")]
    health = IntakeHealth(lambda: topics)
    health.ready()
    instruments = IntakeInstruments(lambda: topics, lambda: 0)
    with Listener("127.0.0.1", 0, instruments=instruments, health=health) as listener:
        address = f"http://127.0.0.1:{listener.address[1]}"
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"{address}/health/live", timeout=10)
        with urllib.request.urlopen(f"{address}/metrics", timeout=10) as answer:
            assert b'archiver_flight_log_ended{topic="t"} 1.0' in answer.read()
