"""Consumer groups: who is in them, who reads what, and how far each has come. Knows no archive and no protocol's bytes.

- `members`: members, and what they are answered
- `group`: one group's joins, rebalances and sessions, as a state machine without I/O
- `coordinator`: all groups, with the clock and the requests that wait
- `offsets`: committed offsets, kept in the registry
"""

from archiver.serve.groups.coordinator import Coordinator
from archiver.serve.groups.group import Group
from archiver.serve.groups.members import GroupState, Joined, Joining, Member, Synced, Syncing
from archiver.serve.groups.offsets import CommittedOffsets, OffsetStore, RegistryOffsets

__all__ = [
    "CommittedOffsets",
    "Coordinator",
    "Group",
    "GroupState",
    "Joined",
    "Joining",
    "Member",
    "OffsetStore",
    "RegistryOffsets",
    "Synced",
    "Syncing",
]
