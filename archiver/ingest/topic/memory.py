"""What a job remembers of a topic from one run to the next; lost with the process, and learnt again."""

from __future__ import annotations

from dataclasses import dataclass, field

from archiver.ingest.plan.density import Density
from archiver.ingest.plan.waiting import Waiting
from catalog.model import PartitionOffset


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMemory:
    """How much an offset takes, since when records wait, and the partitions where one waits for the schema registry.

    `proven` is what `Continuity` found out, `begun` where partitions begin as far as the journal was told.
    """

    density: Density = field(default_factory=Density)
    waiting: Waiting = field(default_factory=Waiting)
    unanswered: set[int] = field(default_factory=set)
    proven: dict[int, PartitionOffset] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)
