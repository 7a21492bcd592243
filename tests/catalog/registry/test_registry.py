"""A call of the registry is one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from catalog.registry import Part, in_transaction
from catalog.registry.postgres import Connection, Postgres


class Transactions:
    def __init__(self) -> None:
        self.ended: list[str] = []
        self.is_open = False

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        assert not self.is_open, "a call takes one connection"
        self.is_open = True
        try:
            yield len(self.ended)
        except BaseException:
            self.ended.append("rolled back")
            raise
        else:
            self.ended.append("committed")
        finally:
            self.is_open = False


def divided(connection: Connection, by: int, *, of: int = 10) -> tuple[Connection, int]:
    """Divides."""
    return connection, of // by


class Numbers(Part):
    divided = in_transaction(divided)


@pytest.fixture
def transactions() -> Transactions:
    return Transactions()


@pytest.fixture
def numbers(transactions: Transactions) -> Numbers:
    return Numbers(cast("Postgres", transactions))


def test_each_call_is_a_transaction_of_its_own(numbers: Numbers, transactions: Transactions) -> None:
    assert [numbers.divided(5), numbers.divided(2, of=6)] == [(0, 2), (1, 3)]
    assert transactions.ended == ["committed", "committed"]


def test_a_call_that_fails_is_rolled_back(numbers: Numbers, transactions: Transactions) -> None:
    with pytest.raises(ZeroDivisionError):
        numbers.divided(0)
    assert transactions.ended == ["rolled back"]


def test_a_call_says_what_its_function_says() -> None:
    assert (Numbers.divided.__name__, Numbers.divided.__doc__) == ("divided", "Divides.")
