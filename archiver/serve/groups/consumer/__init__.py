"""KIP-848 groups: the group assigns the partitions."""

from archiver.serve.groups.consumer.assignors import ASSIGNORS
from archiver.serve.groups.consumer.group import MOST_BYTES, ConsumerGroup, GroupTimes
from archiver.serve.groups.consumer.members import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    PAUSING_EPOCH,
    Beat,
    Beaten,
    ConsumerMember,
    ConsumerState,
    MemberState,
    PartitionId,
)
from archiver.serve.groups.consumer.subscriptions import KnownTopic, MatchedTopics, Rights, Topics, match_names

__all__ = [
    "ASSIGNORS",
    "JOINING_EPOCH",
    "LEAVING_EPOCH",
    "MOST_BYTES",
    "PAUSING_EPOCH",
    "Beat",
    "Beaten",
    "ConsumerGroup",
    "ConsumerMember",
    "ConsumerState",
    "GroupTimes",
    "KnownTopic",
    "MatchedTopics",
    "MemberState",
    "PartitionId",
    "Rights",
    "Topics",
    "match_names",
]
