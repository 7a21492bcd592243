"""Groups with the classic protocol: members join and sync, and one of them assigns the partitions.

- `member_ids`: ids that are given to members before they join
- `members`: members, and what they are answered
- `group`: one group's joins, rebalances and sessions, as a state machine without I/O
"""

from archiver.serve.groups.classic.group import INITIAL_DELAY, ClassicGroup
from archiver.serve.groups.classic.member_ids import MemberIds
from archiver.serve.groups.classic.members import (
    ClassicMember,
    GroupState,
    Joined,
    Joining,
    Reply,
    Synced,
    Syncing,
    Ticket,
)

__all__ = [
    "INITIAL_DELAY",
    "ClassicGroup",
    "ClassicMember",
    "GroupState",
    "Joined",
    "Joining",
    "MemberIds",
    "Reply",
    "Synced",
    "Syncing",
    "Ticket",
]
