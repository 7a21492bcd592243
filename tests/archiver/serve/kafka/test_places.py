"""Unauthenticated connections give way."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.serve.kafka.places import Places


def task(name: object) -> Any:
    return name


def test_strangers_get_half_and_busiest_address_gives_way() -> None:
    places = Places(8, None)
    for number in range(3):
        places.take(task(number), "many")
    places.take(task("one"), "few")
    assert places.refusal("few") is None
    assert places.give_way("few") == 0
    places.take(task("two"), "few")
    assert places.give_way("few") in {1, "one"}


def test_who_has_logged_in_never_gives_way() -> None:
    places = Places(2, None)
    for name in ("a", "b"):
        assert places.refusal("here") is None
        assert places.give_way("here") is None
        places.take(task(name), "here")
        assert places.show(task(name), name) is None
    assert places.refusal("here") == "2 clients are connected (max_connections)"
    places.leave(task("a"))
    assert places.refusal("here") is None


def test_an_address_whose_clients_need_not_log_in_gets_half() -> None:
    places = Places(4, None)
    for name in ("a", "b"):
        places.take(task(name), "here")
        assert places.show(task(name), None) is None
    assert places.refusal("here") == "its address has 2 connections (max_connections_per_address)"
    assert places.refusal("there") is None


def test_a_silent_connection_of_the_same_address_gives_way_first() -> None:
    places = Places(100, 2)
    places.take(task("silent"), "here")
    places.take(task("asks"), "here")
    places.show(task("asks"), "alice")
    assert places.refusal("here") is None
    assert places.give_way("here") == "silent"
    places.take(task("next"), "here")
    places.show(task("next"), "alice")
    assert places.refusal("here") == "its address has 2 connections (max_connections_per_address)"


def test_places_are_free_again() -> None:
    places = Places(4, None)
    for _ in range(3):
        for number in range(2):
            places.take(task(number), "here")
            places.show(task(number), "alice" if number else None)
        for number in range(2):
            places.leave(task(number))
            places.leave(task(number))
    assert not places._taken
    assert not places._addresses
    assert not places._strangers


@pytest.mark.parametrize("most_per_address", [None, 20])
def test_a_principal_leaves_places_to_other_clients(most_per_address: int | None) -> None:
    places = Places(20, most_per_address)
    for number in range(20):
        assert places.refusal("here") is None
        places.take(task(number), "here")
        why = places.show(task(number), "alice")
        if number < 18:
            assert why is None
        else:
            assert why == "its principal has 18 connections, nine tenths of max_connections"
            places.leave(task(number))
    places.take(task("bob"), "there")
    assert places.show(task("bob"), "bob") is None
    places.leave(task(3))
    places.take(task("next"), "here")
    assert places.show(task("next"), "alice") is None
