"""Contexts in subjects, by Confluent's rules."""

from __future__ import annotations

import pytest

from archiver.schemas.registry.contexts import context_of, in_context


@pytest.mark.parametrize(
    ("subject", "context"),
    [
        (None, ""),
        ("orders-value", ""),
        (":.team:orders-value", ":.team:"),
        (":.team:", ":.team:"),
        (":.team", ":.team:"),
        (":.:orders-value", ""),
        (":.a.b:with:colons", ":.a.b:"),
        (":*:orders-value", ""),
        ("a:.team:b", ""),
        ("::orders-value", ""),
        (":.team:.other:orders", ":.team:"),
        (":.lkc-1.prod_2:orders.value-value", ":.lkc-1.prod_2:"),
    ],
)
def test_context_of_a_subject(subject: str | None, context: str) -> None:
    assert context_of(subject) == context


def test_reference_inherits_the_context_of_its_schema() -> None:
    assert in_context("money", ":.team:") == ":.team:money"
    assert in_context(":.other:money", ":.team:") == ":.other:money"
    assert in_context("money", "") == "money"
