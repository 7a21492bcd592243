"""Topics by name and by pattern."""

from __future__ import annotations

from uuid import UUID

import pytest

from archiver.serve.groups.consumer.subscriptions import KnownTopic, pattern_error, wanted

NAMES = ("orders", "orders-eu", "refunds", "a.b")
TOPICS = {name: KnownTopic(UUID(int=place), 1) for place, name in enumerate(NAMES, 1)}


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("orders", ["orders"]),
        ("orders.*", ["orders", "orders-eu"]),
        ("orders|refunds", ["orders", "refunds"]),
        ("(?i)REFUNDS", ["refunds"]),
        (r"a\.b", ["a.b"]),
        (".*-eu", ["orders-eu"]),
        ("rders", []),
        ("", []),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, matched: list[str]) -> None:
    assert wanted(frozenset(), pattern, TOPICS) == {TOPICS[each].topic_id for each in matched}


def test_names_and_a_pattern_go_together_and_unknown_names_wait() -> None:
    assert wanted(frozenset({"refunds", "later"}), "a.*", TOPICS) == {
        TOPICS["refunds"].topic_id,
        TOPICS["a.b"].topic_id,
    }


@pytest.mark.parametrize("pattern", ["[", "a)(b", "(?<=a)b", r"\1", "a**", r"\Qopen"])
def test_what_is_no_pattern_of_re2_is_told(pattern: str) -> None:
    assert pattern_error(pattern)


def test_no_pattern_takes_long() -> None:
    name = "a" * 200 + "b"
    assert wanted(frozenset(), "(a|aa)+" * 20 + "c", {name: KnownTopic(UUID(int=1), 1)}) == frozenset()
