"""What the job remembers of a topic between its runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from archiver.ingest.plan.backlog import BytesPerOffset
from archiver.ingest.plan.waiting import WaitingSince
from catalog.model import PartitionOffset


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMemory:
    """How much an offset takes, since when records wait, and the partitions that are held up by one of their records.

    Such a record waits for the schema registry, or halts its topic. `proven` is what `Continuity` found out, `begun`
    where partitions begin as far as the journal knows. `unproven` has the partitions whose leader proves no epochs.
    """

    sizes: BytesPerOffset = field(default_factory=BytesPerOffset)
    waiting: WaitingSince = field(default_factory=WaitingSince)
    held_up: set[int] = field(default_factory=set)
    proven: dict[int, PartitionOffset] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)
    unproven: set[int] = field(default_factory=set)
