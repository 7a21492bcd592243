"""Acknowledged records by offset, and outcomes of transactions."""

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
    acknowledged: dict[Place, Payload] = field(default_factory=dict)
    aborted: set[Place] = field(default_factory=set)

    def entry(self, pending: dict[Place, Payload] | None = None) -> Callable[..., None]:
        into = self.acknowledged if pending is None else pending

        def note(error: Any, message: Any) -> None:
            if error is None:
                into[message.topic(), message.partition(), message.offset()] = message.key(), message.value()

        return note

    def committed(self, pending: dict[Place, Payload]) -> None:
        self.acknowledged |= pending

    def rolled_back(self, pending: dict[Place, Payload]) -> None:
        self.aborted |= pending.keys()

    def forget(self, topic: str, partition: int, lost: range) -> None:
        for offset in lost:
            self.acknowledged.pop((topic, partition, offset), None)
