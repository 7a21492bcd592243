"""Which batches of a Fetch response belong to aborted transactions, by the response's own list of them.

The rules are those of Kafka's consumers: a producer becomes aborted once a batch reaches the first offset of one of its
aborted transactions, and stays so up to its abort marker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from archiver.wire.columns import AbortedTransaction


class AbortedTransactions:
    """Follows a response's batches in offset order and says which of them were aborted."""

    __slots__ = ("_ahead", "_open")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._ahead = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        self._open: dict[int, AbortedTransaction] = {}

    def __bool__(self) -> bool:
        return bool(self._ahead or self._open)

    def reach(self, last_offset: int) -> None:
        """Take note that the log was read up to `last_offset`, where the batch ends that is judged next."""
        while self._ahead and self._ahead[0].first_offset <= last_offset:
            transaction = self._ahead.popleft()
            self._open[transaction.producer_id] = transaction

    def includes(self, producer_id: int) -> bool:
        """Whether a transactional batch of this producer, just reached, is part of an aborted transaction."""
        return producer_id in self._open

    def end(self, producer_id: int) -> None:
        """Take note of the producer's abort marker."""
        self._open.pop(producer_id, None)

    def remaining(self) -> tuple[AbortedTransaction, ...]:
        """The transactions whose abort marker has not been seen: what the rest of the response is to be read with."""
        return (*self._open.values(), *self._ahead)
