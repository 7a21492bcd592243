"""Values of the KIP-848 protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode

from archiver.serve.groups.budgets import ENTRY_BYTES, MEMBER_BYTES, GroupBudget
from archiver.serve.groups.consumer.subscriptions import Rights, Topics

PartitionId: TypeAlias = tuple[UUID, int]
"""A partition of the topic with this id."""

JOINING_EPOCH: Final = 0
"""A member that joins, or joins again."""
LEAVING_EPOCH: Final = -1
"""A member that leaves."""
PAUSING_EPOCH: Final = -2
"""A static member that leaves and will be back."""


_NO_BUDGET: Final = GroupBudget()


class ConsumerState(Enum):
    """States, by Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(Enum):
    """A member's step on the way to its target."""

    STABLE = "stable"
    UNHEARD = "unheard"
    """It must revoke partitions, and has not confirmed the assignment without them."""
    UNREVOKED = "unrevoked"
    """It must revoke partitions, and has not confirmed that it did."""
    UNRELEASED = "unreleased"
    """It waits for partitions that other members still own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """None: unchanged. An empty `pattern`: no pattern. `rights` None: all rights."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    host: str = ""
    rebalance_seconds: float | None = None
    names: frozenset[str] | None = None
    pattern: str | None = None
    assignor: str | None = None
    owned: frozenset[PartitionId] | None = None
    rights: Rights | None = None
    budget: GroupBudget = _NO_BUDGET

    @property
    def is_full(self) -> bool:
        has_topics = self.names is not None or self.pattern is not None
        return self.owned is not None and self.rebalance_seconds is not None and has_topics

    @property
    def size(self) -> int:
        return sum(map(len, self.names or ())) + len(self.pattern or "")

    @property
    def takes(self) -> int:
        ids = len(self.member_id) + len(self.instance_id or "") + len(self.rack_id or "") + len(self.client_id)
        return MEMBER_BYTES + ids + self.size + ENTRY_BYTES * len(self.names or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Beaten:
    """`assigned` is None if the member has confirmed it."""

    error: ErrorCode = ErrorCode.none
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    assigned: frozenset[PartitionId] | None = None


@dataclass(slots=True, kw_only=True)
class ConsumerMember:
    """It holds `assigned`, and `revoking` until it confirms the revocation."""

    member_id: str
    instance_id: str | None
    rack_id: str | None = None
    client_id: str = ""
    host: str = ""
    owner: str = ""
    rebalance_seconds: float = 0.0
    names: frozenset[str] = frozenset()
    names_size: int = 0
    pattern: str = ""
    assignor: str | None = None
    rights: Rights | None = None
    epoch: int = JOINING_EPOCH
    previous_epoch: int = JOINING_EPOCH
    state: MemberState = MemberState.STABLE
    owned: frozenset[PartitionId] = frozenset()
    """What it last said that it holds. A heartbeat that leaves this out says that nothing changed."""
    assigned: frozenset[PartitionId] = frozenset()
    revoking: frozenset[PartitionId] = frozenset()
    since: dict[PartitionId, int] = field(default_factory=dict)
    """The epoch at which each partition was assigned."""
    topics: frozenset[UUID] = frozenset()
    """The topics that its subscription means, as far as its rights go."""
    looked_up_in: Topics | None = None
    """The topics among which they were last looked up."""
    expires: float = float("inf")
    revokes_by: float = float("inf")

    @property
    def size(self) -> int:
        return self.names_size + len(self.pattern)

    @property
    def takes(self) -> int:
        ids = len(self.member_id) + len(self.instance_id or "") + len(self.rack_id or "") + len(self.client_id)
        return MEMBER_BYTES + ids + self.size + ENTRY_BYTES * len(self.names)

    @property
    def is_away(self) -> bool:
        return self.epoch == PAUSING_EPOCH
