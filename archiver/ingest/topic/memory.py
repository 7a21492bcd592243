"""State of a topic between runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from archiver.ingest.plan.backlog import BytesPerOffset
from archiver.ingest.plan.waiting import WaitingSince
from catalog.model import PartitionOffset


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMemory:
    """`held_up` partitions wait for one record (schema registry, or a halt).

    `proven` is by `Continuity`, `begun` are journaled first offsets, `unproven` lack epoch proofs.
    """

    sizes: BytesPerOffset = field(default_factory=BytesPerOffset)
    waiting: WaitingSince = field(default_factory=WaitingSince)
    held_up: set[int] = field(default_factory=set)
    proven: dict[int, PartitionOffset] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)
    unproven: set[int] = field(default_factory=set)
