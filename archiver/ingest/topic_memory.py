"""What a job remembers of a topic from one run to the next; lost with the process, and learnt again."""

from __future__ import annotations

from dataclasses import dataclass, field

from archiver.ingest.density import Density
from archiver.ingest.waiting import Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMemory:
    """How much an offset takes, since when records wait, and the partitions where one waits for the schema registry."""

    density: Density = field(default_factory=Density)
    waiting: Waiting = field(default_factory=Waiting)
    unanswered: set[int] = field(default_factory=set)
