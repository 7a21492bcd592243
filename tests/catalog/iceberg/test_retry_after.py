from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import requests

from catalog.iceberg.commit import Backoff
from catalog.iceberg.rest import connect
from catalog.iceberg.retry_after import AskedPause, retry_after_seconds
from tests.support.servers.serving import answering


def response(status: int, text: str | None) -> requests.Response:
    made = requests.Response()
    made.status_code = status
    if text is not None:
        made.headers["Retry-After"] = text
    return made


@pytest.mark.parametrize(
    ("status", "text", "seconds"),
    [
        (503, "7", 7.0),
        (429, " 0 ", 0.0),
        (503, None, 0.0),
        (503, "soon", 0.0),
        (503, "-5", 0.0),
        (503, "Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        (500, "7", 0.0),
        (200, "7", 0.0),
    ],
)
def test_what_a_server_asks_for(status: int, text: str | None, seconds: float) -> None:
    assert retry_after_seconds(response(status, text)) == seconds


def test_dates_are_understood() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 85.0 < retry_after_seconds(response(503, later)) <= 90.0


def test_an_answer_ends_the_pause() -> None:
    asked = AskedPause()
    assert asked.seconds() == 0.0
    asked.note(response(429, "30"))
    assert 29.0 < asked.seconds() <= 30.0
    asked.note(response(200, None))
    assert asked.seconds() == 0.0


def test_pauses_between_attempts_are_never_shorter() -> None:
    paused: list[float] = []
    backoff = Backoff(attempts=4, pause=paused.append, jitter=lambda: 0.0, asked_seconds=lambda: 5.0)
    assert list(backoff) == [0, 1, 2, 3]
    assert paused == [5.0, 5.0, 5.0]


def test_who_asks_for_too_much_is_not_tried_again() -> None:
    paused: list[float] = []
    assert list(Backoff(attempts=4, pause=paused.append, asked_seconds=lambda: 3600.0)) == [0]
    assert paused == []


def test_the_catalogs_answers_are_heard() -> None:
    with answering(200, {"defaults": {}, "overrides": {}}) as uri:
        catalog = connect({"uri": uri}, timeout_seconds=5.0)
    with catalog, answering(503, {}, headers={"Retry-After": "12"}) as busy:
        catalog.session.get(busy)
        assert 10.0 < catalog.asked_pause.seconds() <= 12.0
