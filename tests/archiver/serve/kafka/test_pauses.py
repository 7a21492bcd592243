"""Clients with full queues pause."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from archiver.serve.kafka.pauses import MOST_WAIT, Pauses, may_pause

MB = 1 << 20
RECORDS = 20_000
"""In an answer of a megabyte."""
QUEUE = 100_000
SOURCE_SECONDS = 0.02
"""What an answer takes to come, and to be unpacked."""


@dataclass
class Client:
    takes: float
    pauses: Pauses | None = field(default_factory=Pauses)
    now: float = 1000.0
    queue: float = 0.0
    idle: float = 0.0
    paused: int = 0
    read: int = 0

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.idle += max(0.0, seconds - self.queue / self.takes)
        self.queue = max(0.0, self.queue - seconds * self.takes)

    def run(self, seconds: float) -> None:
        self.idle, self.paused, self.read = 0.0, 0, 0
        until = self.now + seconds
        while self.now < until:
            if self.queue >= QUEUE:
                self.paused += 1
                self.pass_time(1.0)
            wait = self.pauses.delay(self.now) if self.pauses else 0.0
            assert 0.0 <= wait <= MOST_WAIT
            self.pass_time(wait)
            if self.pauses:
                self.pauses.note_answer(MB, RECORDS, self.now)
            self.pass_time(SOURCE_SECONDS)
            self.queue += RECORDS
            self.read += RECORDS


@pytest.mark.parametrize("takes", [120_000, 200_000, 400_000, 600_000])
def test_fast_client_has_records_most_of_the_time(takes: int) -> None:
    alone, spread = Client(takes, pauses=None), Client(takes)
    for client in (alone, spread):
        client.run(30.0)
        client.run(60.0)
    assert alone.idle > 5.0
    assert spread.idle < alone.idle / 2
    assert spread.read > alone.read
    assert spread.read > 0.8 * 60 * takes
    assert spread.paused < alone.paused / 2


@pytest.mark.parametrize("takes", [1_000, 40_000])
def test_a_program_that_takes_its_time_is_never_kept_waiting(takes: int) -> None:
    client = Client(takes)
    client.run(10.0)
    client.run(300.0)
    assert client.paused > 10
    assert client.idle == 0.0


def test_one_that_becomes_faster_is_given_more() -> None:
    client = Client(60_000)
    client.run(30.0)
    client.takes = 300_000
    client.run(15.0)
    client.run(15.0)
    assert client.read > 0.8 * 15 * 300_000


def test_one_that_becomes_slower_is_given_less() -> None:
    client = Client(400_000)
    client.run(30.0)
    client.takes = 150_000
    client.run(15.0)
    client.run(60.0)
    assert client.read > 0.9 * 60 * 150_000
    assert client.paused < 10


def test_client_without_further_pauses_gets_everything() -> None:
    client = Client(200_000)
    client.run(30.0)
    client.takes = 1e9
    client.run(60.0)
    client.run(3600.0)
    assert client.read > 0.99 * 3600.0 * RECORDS / SOURCE_SECONDS
    client.takes, client.queue = 200_000, 0
    client.run(30.0)
    client.run(60.0)
    assert client.read > 0.8 * 60 * 200_000


def test_answers_that_become_larger_leave_no_debt() -> None:
    client = Client(200_000)
    client.run(10.0)
    assert client.pauses is not None
    pauses, now = client.pauses, client.now
    waits = []
    for _ in range(100):
        waits.append(pauses.delay(now))
        now += waits[-1]
        pauses.note_answer(50 * MB, RECORDS, now)
        now += 0.2
    assert max(waits) <= MOST_WAIT
    for _ in range(10):
        waits.append(pauses.delay(now))
        now += waits[-1]
        pauses.note_answer(MB, RECORDS, now)
        now += 0.2
    assert max(waits[-9:]) < MOST_WAIT, "the first one paid what was owed"


@pytest.mark.parametrize("gap", [0.5, 2.5])
def test_what_is_no_pause_changes_nothing(gap: float) -> None:
    pauses, now = Pauses(), 1000.0
    for _ in range(100):
        assert pauses.delay(now) == 0.0
        pauses.note_answer(MB, 10 * QUEUE, now)
        now += gap


def test_waiting_for_new_records_is_no_pause() -> None:
    pauses, now = Pauses(), 1000.0
    for _ in range(100):
        assert pauses.delay(now) == 0.0
        pauses.note_answer(MB, 10 * QUEUE, now)
        assert pauses.delay(now + 0.01) == 0.0
        pauses.note_answer(0, 0, now + 0.01)
        now += 1.01


@pytest.mark.parametrize(
    ("software", "expected"),
    [
        ("librdkafka 2.16.0", True),
        ("confluent-kafka-python 2.16.1-rdkafka-2.16.0", True),
        ("confluent-kafka-dotnet 2.5.0-librdkafka-2.5.0", True),
        ("apache-kafka-java 4.3.0", False),
        ("franz-go unknown", False),
        (" ", False),
    ],
)
def test_which_clients_pause(software: str, *, expected: bool) -> None:
    assert may_pause(software) is expected
