"""Accepted spans need accepted rows in the account."""

from __future__ import annotations

from typing import Any, cast

import pytest

from catalog.registry.expected_rows import expected_ranges
from catalog.registry.postgres import Connection
from tests.support.catalog.memory import TOPIC

SPANS = (0, [[2, 4]], 2, 0)


class Answers:
    def __init__(self, account: list[tuple[Any, ...]], accepted: list[tuple[Any, ...]]) -> None:
        self.files = [("A", 0, 0, 10, "file:///a.parquet", 7, 7, None, 3)]
        self.account, self.accepted = account, accepted

    def execute(self, query: str, _: object) -> list[tuple[Any, ...]]:
        if "FROM files" in query:
            return self.files
        return self.accepted if "FROM accepted_offsets" in query else self.account


def interval(*, erased: int = 0, removed: int = 0, lost: int = 0, retired: int = 0) -> tuple[Any, ...]:
    return (0, 0, 9, 7, None, erased, removed, lost, retired, False, False, None)


@pytest.mark.parametrize(
    ("account", "is_accepted"),
    [
        ([interval(removed=2)], True),
        ([interval(removed=1, lost=1)], True),
        ([interval(erased=3)], False),
        ([interval(retired=3)], False),
        ([interval(removed=1, erased=2)], False),
        ([], True),
    ],
)
def test_only_rows_accepted_in_the_account_prove_spans(account: list[tuple[Any, ...]], *, is_accepted: bool) -> None:
    (range_,) = expected_ranges(cast("Connection", Answers(account, [SPANS])), TOPIC)
    assert (range_.accepted, range_.accepted_rows, range_.gone) == (
        ((2, 4),) if is_accepted else (),
        2 * is_accepted,
        3,
    )
    (plain,) = expected_ranges(cast("Connection", Answers(account, [])), TOPIC)
    assert plain.accepted == ()
