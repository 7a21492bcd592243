"""Groups with the classic protocol."""

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
