"""The state of a topic's log: next offsets and clients. Each segment begins with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archiver.intake.batches import BatchPart, IntakeBatch, LoggedBatch
from archiver.intake.clients import Clients


@dataclass(slots=True, kw_only=True)
class IntakeState:
    """`sequence` is the number of the next entry. `time_ms` never falls."""

    clients: Clients
    sequence: int = 0
    time_ms: int = 0
    next_offsets: dict[int, int] = field(default_factory=dict)

    def place(self, batch: IntakeBatch, *, now_ms: int) -> LoggedBatch:
        return LoggedBatch(
            client=batch.client,
            number=self.clients.number(batch.client),
            incarnation=batch.incarnation,
            batch_id=batch.batch_id,
            digest=batch.digest,
            time_ms=max(now_ms, self.time_ms),
            parts=tuple(
                BatchPart(partition, self.next_offsets.get(partition, 0), rows)
                for partition, rows in batch.rows
                if rows
            ),
            principal=batch.principal,
            schema_version=batch.schema_version,
        )

    def add(self, batch: LoggedBatch) -> None:
        self.sequence += 1
        self.time_ms = batch.time_ms
        self.clients.accept(batch)
        for part in batch.parts:
            self.next_offsets[part.partition] = part.end_offset

    def fence(self, client: str, incarnation: int, principal: str = "") -> None:
        self.sequence += 1
        self.clients.fence(client, incarnation, principal)

    def to_json(self, *, answers: bool = True) -> dict[str, Any]:
        """Without `answers`, repeated batches are refused."""
        return {
            "sequence": self.sequence,
            "time_ms": self.time_ms,
            "next_offsets": {str(partition): offset for partition, offset in self.next_offsets.items()},
            "clients": self.clients.to_json(answers=answers),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, most_clients: int) -> IntakeState:
        return cls(
            sequence=value.get("sequence", 0),
            time_ms=value.get("time_ms", 0),
            next_offsets={int(partition): offset for partition, offset in value.get("next_offsets", {}).items()},
            clients=Clients.from_json(value.get("clients", {}), most=most_clients),
        )


def covered_state(states: Sequence[Mapping[str, Any]], ends: Mapping[int, int]) -> Mapping[str, Any]:
    """The newest state whose rows all end at or before `ends`. Empty if none."""
    newest: Mapping[str, Any] = {}
    for state in states:
        offsets: Mapping[str, int] = state.get("next_offsets", {})
        if all(offset <= ends.get(int(partition), 0) for partition, offset in offsets.items()):
            newest = state
    return newest
