"""What producers were told: which records the broker acknowledged at which offset, and what became of transactions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Place: TypeAlias = tuple[str, int, int]
"""Topic, partition, offset."""
Payload: TypeAlias = tuple[bytes | None, bytes | None]
"""Key and value."""


@dataclass(slots=True)
class Ledger:
    """Acknowledged records by place, and the places of records whose transaction was aborted.

    A record that nobody acknowledged is in neither; it may be there or not.
    """

    acknowledged: dict[Place, Payload] = field(default_factory=dict)
    aborted: set[Place] = field(default_factory=set)

    def entry(self, pending: dict[Place, Payload] | None = None) -> Callable[..., None]:
        """A callback for `produce`; with `pending`, records stay there until their transaction has ended."""
        into = self.acknowledged if pending is None else pending

        def note(error: Any, message: Any) -> None:
            if error is None:
                into[message.topic(), message.partition(), message.offset()] = message.key(), message.value()

        return note

    def committed(self, pending: dict[Place, Payload]) -> None:
        """A transaction was committed."""
        self.acknowledged |= pending

    def rolled_back(self, pending: dict[Place, Payload]) -> None:
        """A transaction was aborted."""
        self.aborted |= pending.keys()

    def forget(self, topic: str, partition: int, lost: range) -> None:
        """Expect nothing any more of offsets that the log lost."""
        for offset in lost:
            self.acknowledged.pop((topic, partition, offset), None)
