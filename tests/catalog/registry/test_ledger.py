"""The ledger is read without a lock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self, cast

from catalog.registry.ledger_rows import load
from catalog.registry.postgres import Connection
from tests.support.catalog.memory import TOPIC

BEFORE, AFTER = 120, 130


class WithARival:
    def __init__(self) -> None:
        self._last_id = BEFORE
        self._rows: list[tuple[Any, ...]] = []

    def execute(self, statement: str, _: object) -> Self:
        if "FROM field_ids" in statement:
            self._last_id = AFTER
        self._rows = [(self._last_id, None, None, None)] if "FROM topics" in statement else []
        return self

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._rows)

    def fetchone(self) -> tuple[Any, ...]:
        return self._rows[0]


def test_no_id_of_a_column_that_was_read_is_above_the_last_id() -> None:
    """The journal keeps this number: a higher id would be assigned twice after a rebuild."""
    assert load(cast("Connection", WithARival()), TOPIC).last_id == AFTER
