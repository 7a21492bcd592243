"""Consumer groups: members, assignments and committed offsets. Knows neither archives nor a protocol's bytes.

- `budgets`: memory and registry space per client
- `classic`: the classic protocol (join, sync, the leader assigns)
- `consumer`: the protocol of KIP-848 (heartbeats, the group assigns)
- `coordinator`: all groups, with the clock and the waiting requests
- `heard_time`: a clock that stops while members can't be heard
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
    PartitionId,
    Rights,
    Topics,
    match_names,
)
from archiver.serve.groups.coordinator import AnyGroup, Coordinator, is_group_id
from archiver.serve.groups.offsets import CommittedOffsets, GroupOffsetStore, RegistryOffsets

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
    "GroupOffsetStore",
    "GroupState",
    "GroupTimes",
    "Joined",
    "Joining",
    "KnownTopic",
    "MatchedTopics",
    "MemberMemory",
    "PartitionId",
    "RegistryOffsets",
    "Rights",
    "Synced",
    "Syncing",
    "Topics",
    "is_group_id",
    "match_names",
]
