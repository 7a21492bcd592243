"""Quotas of principals."""

from __future__ import annotations

import pytest

from archiver.access import Principal
from archiver.serve.security import Quota, Quotas
from archiver.serve.security.quotas import MOST_WAIT

ALICE, BOB = Principal("alice"), Principal("bob")


def test_over_time_a_client_gets_no_more_than_its_rate() -> None:
    quotas = Quotas([Quota(principal="User:*", bytes_per_second=1000.0)])
    now, got = 0.0, 0
    while now < 60.0:
        got += 700
        now += max(0.01, quotas.wait(ALICE, 700, now))
    assert 59_000 <= got <= 62_000


def test_a_large_answer_is_waited_for_bit_by_bit() -> None:
    quotas = Quotas([Quota(principal="User:*", bytes_per_second=1000.0)])
    assert quotas.wait(ALICE, 100_000, 0.0) == MOST_WAIT
    assert quotas.wait(ALICE, 0, 50.0) == MOST_WAIT
    assert quotas.wait(ALICE, 0, 98.0) == pytest.approx(1.0)
    assert quotas.wait(ALICE, 0, 99.5) == 0.0


def test_the_nearest_quota_speaks_for_a_principal() -> None:
    quotas = Quotas(
        [
            Quota(principal="User:*", requests_per_second=1.0),
            Quota(principal="User:al*", requests_per_second=100.0),
            Quota(principal="User:bob", bytes_per_second=1.0),
        ]
    )
    for _ in range(50):
        assert quotas.wait(ALICE, 1, 0.0) == 0.0
        assert quotas.wait(BOB, 0, 0.0) == 0.0
    carol = Principal("carol")
    assert [quotas.wait(carol, 1, 0.0) for _ in range(3)] == [0.0, 1.0, 2.0]
    assert quotas.wait(Principal("dave"), 1, 0.0) == 0.0, "each has its own"


def test_what_is_owed_is_known_before_more_is_asked_for() -> None:
    quotas = Quotas([Quota(principal="User:*", requests_per_second=2.0, bytes_per_second=1000.0)])
    assert quotas.owed(ALICE, 0.0) == (0.0, 0.0)
    for _ in range(4):
        quotas.wait(ALICE, 5000, 0.0)
    assert quotas.owed(ALICE, 0.0) == (1.0, MOST_WAIT)
    assert quotas.owed(ALICE, 10.0) == (0.0, 9.0), "asking costs nothing"
    assert quotas.owed(ALICE, 18.9999) == (0.0, 0.0)
    assert quotas.owed(BOB, 0.0) == (0.0, 0.0)
    assert Quotas().owed(ALICE, 0.0) == (0.0, 0.0)


def test_commits_of_one_owner_are_waited_for_no_longer_than_once() -> None:
    quotas = Quotas()
    for _ in range(100):
        assert quotas.commit_wait("a", 1 << 30, 0.0) == MOST_WAIT
    assert quotas.commit_wait("a", 0, MOST_WAIT / 2) == pytest.approx(MOST_WAIT / 2)
    assert quotas.commit_wait("a", 0, MOST_WAIT) == 0.0
    assert quotas.commit_wait("b", 1 << 20, 0.0) == 0.0
