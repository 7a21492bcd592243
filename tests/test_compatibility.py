"""The table of docs/compatibility.md is of the last `make interop RECORD=1`."""

from __future__ import annotations

from tests.support.clients.found import CLIENTS, FEATURES, MISSING, NONE, PAGE, kept, page


def test_the_page_shows_what_was_found() -> None:
    """After a change of either: `make interop RECORD=1`."""
    assert page(PAGE.read_text(encoding="utf-8"), kept()) == PAGE.read_text(encoding="utf-8")


def test_every_client_was_asked_everything() -> None:
    assert tuple(kept()) == CLIENTS
    for key, client in kept().items():
        assert set(client["features"]) == set(FEATURES), key
        assert {feature for feature, outcome in client["features"].items() if outcome == NONE} == set(
            MISSING.get(key, ())
        )
