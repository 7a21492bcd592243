"""The decision of `archiver abandon`, kept in the registry for repeated commands.

Rows that it doesn't save are lost, even if a later run can read them: clients may have sent them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from archiver.intake.losses import PartitionLosses
from archiver.intake.salvage import Salvage
from archiver.intake.state import IntakeState
from catalog.offset_range import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedLosses:
    """The next log begins with `state`. `acknowledged` offsets exclude skipped ones."""

    state: IntakeState
    acknowledged: Mapping[int, int]
    saved: tuple[OffsetRange, ...]

    @classmethod
    def of(cls, state: IntakeState, partitions: Iterable[PartitionLosses]) -> Self:
        partitions = tuple(partitions)
        return cls(
            state=IntakeState(
                clients=state.clients,
                sequence=state.sequence,
                time_ms=state.time_ms,
                next_offsets={losses.partition: losses.next_offset for losses in partitions},
            ),
            acknowledged={losses.partition: losses.acknowledged for losses in partitions},
            saved=tuple(offsets for losses in partitions for offsets in losses.saved),
        )

    def to_json(self) -> dict[str, Any]:
        return self.state.to_json() | {
            "acknowledged": {str(partition): offset for partition, offset in self.acknowledged.items()},
            "saved": [[offsets.partition, offsets.first, offsets.last] for offsets in self.saved],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            state=IntakeState.from_json(value, most_clients=0),
            acknowledged={int(partition): offset for partition, offset in value["acknowledged"].items()},
            saved=tuple(OffsetRange(*offsets) for offsets in value["saved"]),
        )

    def salvage(self, readable: Salvage) -> Salvage:
        """Readable rows to save, with the clients' positions of the decision."""
        state = replace(self.state, next_offsets=dict(self.acknowledged))
        parts = {
            partition: tuple(part for part in parts if self._has(part)) for partition, parts in readable.parts.items()
        }
        return Salvage(state=state, parts=parts, unreadable=readable.unreadable)

    def _has(self, part: OffsetRange) -> bool:
        return any(
            offsets.partition == part.partition and offsets.first <= part.first and part.end <= offsets.end
            for offsets in self.saved
        )
