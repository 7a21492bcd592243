"""Consumer groups: who is in them, who reads what, and how far each has come. Knows no archive and no protocol's bytes.

- `classic`: groups whose members join, sync, and assign by themselves
- `consumer`: groups whose members send heartbeats, and that assign (KIP-848)
- `coordinator`: all groups, with the clock and the requests that wait
- `offsets`: committed offsets, kept in the registry
"""

from archiver.serve.groups.classic import ClassicGroup, GroupState, Joined, Joining, Synced, Syncing
from archiver.serve.groups.consumer import (
    Beat,
    Beaten,
    ConsumerGroup,
    ConsumerMember,
    GroupTimes,
    KnownTopic,
    Place,
    Topics,
    pattern_error,
    wanted,
)
from archiver.serve.groups.coordinator import AnyGroup, Coordinator
from archiver.serve.groups.offsets import CommittedOffsets, OffsetStore, RegistryOffsets

__all__ = [
    "AnyGroup",
    "Beat",
    "Beaten",
    "ClassicGroup",
    "CommittedOffsets",
    "ConsumerGroup",
    "ConsumerMember",
    "Coordinator",
    "GroupState",
    "GroupTimes",
    "Joined",
    "Joining",
    "KnownTopic",
    "OffsetStore",
    "Place",
    "RegistryOffsets",
    "Synced",
    "Syncing",
    "Topics",
    "pattern_error",
    "wanted",
]
