"""Finds aborted batches, by the rules of Kafka's consumers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTransaction:
    """A transaction that a Fetch response lists as aborted."""

    producer_id: int
    first_offset: int


class AbortedTransactions:
    __slots__ = ("_ahead", "_open")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._ahead = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        self._open: dict[int, AbortedTransaction] = {}

    def __bool__(self) -> bool:
        return bool(self._ahead or self._open)

    def reach(self, last_offset: int) -> None:
        """`last_offset` is the next batch's."""
        while self._ahead and self._ahead[0].first_offset <= last_offset:
            transaction = self._ahead.popleft()
            self._open[transaction.producer_id] = transaction

    def includes(self, producer_id: int) -> bool:
        return producer_id in self._open

    def end(self, producer_id: int) -> None:
        self._open.pop(producer_id, None)

    def remaining(self) -> tuple[AbortedTransaction, ...]:
        """Return transactions without abort marker, for the next decoding."""
        return (*self._open.values(), *self._ahead)
