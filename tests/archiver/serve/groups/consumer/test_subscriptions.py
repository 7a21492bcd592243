"""Topics by name and by pattern."""

from __future__ import annotations

from uuid import UUID

import pytest

from archiver.serve.groups.consumer.subscriptions import (
    KnownTopic,
    MatchedTopics,
    match_names,
    pattern_error,
    wanted,
)

NAMES = ("orders", "orders-eu", "refunds", "a.b")
TOPICS = {name: KnownTopic(UUID(int=index), 1) for index, name in enumerate(NAMES, 1)}


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
    assert wanted(frozenset(), pattern, TOPICS) == frozenset(TOPICS[topic].topic_id for topic in matched)


def test_names_and_a_pattern_go_together_and_unknown_names_wait() -> None:
    assert wanted(frozenset({"refunds", "later"}), "a.*", TOPICS) == frozenset(
        (TOPICS["refunds"].topic_id, TOPICS["a.b"].topic_id)
    )


@pytest.mark.parametrize("pattern", ["[", "a)(b", "(?<=a)b", r"\1", "a**", r"\Qopen"])
def test_what_is_no_pattern_of_re2_is_told(pattern: str) -> None:
    assert pattern_error(pattern, TOPICS)


def test_no_pattern_takes_long() -> None:
    name = "a" * 200 + "b"
    assert wanted(frozenset(), "(a|aa)+" * 20 + "c", {name: KnownTopic(UUID(int=1), 1)}) == frozenset()


def test_a_long_pattern_is_refused() -> None:
    assert match_names("a" * 1024, TOPICS).error is None
    assert match_names("a" * 1025, TOPICS).error == "the pattern has 1025 characters: at most 1024 are taken"


def test_groups_never_compile_a_pattern() -> None:
    topics = MatchedTopics(TOPICS)
    assert wanted(frozenset(), "a.*", topics) is None
    topics.keep("a.*", match_names("a.*", TOPICS))
    assert wanted(frozenset(), "a.*", topics) == frozenset((TOPICS["a.b"].topic_id,))
    assert pattern_error("a.*", topics) is None


def test_kept_patterns_are_bounded() -> None:
    topics = MatchedTopics(TOPICS)
    for number in range(1001):
        topics.keep(f"p{number}", match_names("a.*", ()), f"User:{number % 20}")
    assert topics.matched("p0") is None
    assert topics.matched("p1") is not None
    assert topics.matched("p1000") is not None


def test_a_principal_with_many_patterns_evicts_only_its_own() -> None:
    topics = MatchedTopics(TOPICS)
    topics.keep("theirs", match_names("a.*", ()), "User:a")
    for number in range(5000):
        topics.keep(f"p{number}", match_names("a.*", ()), "User:b")
    assert topics.matched("theirs") is not None
    assert topics.matched("p4899") is None
    assert topics.matched("p4900") is not None
