"""Consumer groups: who is in them, who reads what, and how far each has come. Knows no archive and no protocol's bytes.

- `budgets`: what one client may take of memory and of the registry
- `classic`: groups whose members join, sync, and assign by themselves
- `consumer`: groups whose members send heartbeats, and that assign (KIP-848)
- `coordinator`: all groups, with the clock and the requests that wait
- `heard_time`: a clock that stands still while members can't be heard
- `offsets`: committed offsets, kept in the registry
"""

from archiver.serve.groups.budgets import GroupBudget, MemberMemory
from archiver.serve.groups.classic import ClassicGroup, GroupState, Joined, Joining, Synced, Syncing
from archiver.serve.groups.consumer import (
    JOINING_EPOCH,
    Beat,
    Beaten,
    ConsumerGroup,
    ConsumerMember,
    GroupTimes,
    KnownTopic,
    MatchedTopics,
    Place,
    Rights,
    Topics,
    matching,
)
from archiver.serve.groups.coordinator import AnyGroup, Coordinator, is_group_id
from archiver.serve.groups.offsets import CommittedOffsets, OffsetStore, RegistryOffsets

__all__ = [
    "JOINING_EPOCH",
    "AnyGroup",
    "Beat",
    "Beaten",
    "ClassicGroup",
    "CommittedOffsets",
    "ConsumerGroup",
    "ConsumerMember",
    "Coordinator",
    "GroupBudget",
    "GroupState",
    "GroupTimes",
    "Joined",
    "Joining",
    "KnownTopic",
    "MatchedTopics",
    "MemberMemory",
    "OffsetStore",
    "Place",
    "RegistryOffsets",
    "Rights",
    "Synced",
    "Syncing",
    "Topics",
    "is_group_id",
    "matching",
]
