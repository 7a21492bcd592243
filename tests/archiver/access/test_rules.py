"""Access rules: a denial wins."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.access import Access, Operation, Principal, Rule

ALICE = Principal("alice")


def rule(principal: str = "User:alice", permission: Any = "allow", operations: Any = ("read",), **names: Any) -> Rule:
    return Rule.parse(principal, permission, operations, names.get("topics", ()), names.get("groups", ()))


def test_without_rules_everything_is_allowed() -> None:
    access = Access(ALICE, ())
    assert access.is_open
    assert access.topic("any", Operation.READ)
    assert access.group("any", Operation.DELETE)


@pytest.mark.parametrize(
    ("principal", "name", "is_allowed"),
    [
        ("User:alice", "orders", True),
        ("User:ali*", "orders-eu", True),
        ("User:*", "orders-", True),
        ("User:bob", "orders", False),
        ("User:alic", "orders", False),
        ("User:alice", "order", False),
        ("User:alice", "ORDERS", False),
        ("User:alice", "xorders-eu", False),
    ],
)
def test_names_are_exact_or_begin_so(principal: str, name: str, is_allowed: bool) -> None:
    access = Access(ALICE, [rule(principal, topics=("orders", "orders-*"))])
    assert access.topic(name, Operation.READ) is is_allowed
    assert not access.group(name, Operation.READ), "a topic's rule says nothing of groups"


@pytest.mark.parametrize(
    ("permission", "word", "allowed"),
    [
        ("allow", "describe", {Operation.DESCRIBE}),
        ("allow", "read", {Operation.DESCRIBE, Operation.READ}),
        ("allow", "write", {Operation.DESCRIBE, Operation.WRITE}),
        ("allow", "all", set(Operation)),
        ("deny", "describe", set()),
        ("deny", "read", {Operation.DESCRIBE, Operation.WRITE}),
        ("deny", "write", set(Operation) - {Operation.WRITE}),
        ("deny", "all", set()),
    ],
)
def test_what_the_words_mean(permission: str, word: str, allowed: set[Operation]) -> None:
    base = [rule(operations=("all",), topics=("*",))] if permission == "deny" else []
    access = Access(ALICE, [rule(permission=permission, operations=(word,), topics=("t",)), *base])
    assert {value for value in Operation if access.topic("t", value)} == allowed


def test_a_denial_wins_wherever_it_stands() -> None:
    rules = [rule(topics=("*",)), rule("User:*", "deny", topics=("secret-*",)), rule(topics=("secret-mine",))]
    for value in (rules, rules[::-1]):
        access = Access(ALICE, value)
        assert access.topic("open", Operation.READ)
        assert not access.topic("secret-mine", Operation.READ)


def test_rules_for_others_close_everything() -> None:
    access = Access(ALICE, [rule("User:bob", topics=("*",), groups=("*",))])
    assert not access.is_open
    assert not any(access.topic("t", value) or access.group("g", value) for value in Operation)
