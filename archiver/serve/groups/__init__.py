"""Consumer groups: members, assignments and committed offsets."""

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
