"""Values of the classic protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from kio.schema.errors import ErrorCode

from archiver.serve.groups.budgets import ENTRY_BYTES, MEMBER_BYTES, GroupBudget

Ticket: TypeAlias = int
"""Stands for a request that waits for its answer."""
_NO_BUDGET: Final = GroupBudget()


class GroupState(Enum):
    """States, by Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """`needs_id`: a client without an id gets one first (version 4)."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_seconds: float
    rebalance_seconds: float
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    needs_id: bool = True
    may_skip: bool = True
    """Whether the client knows `skip_assignment` (version 9)."""
    budget: GroupBudget = _NO_BUDGET

    @property
    def takes(self) -> int:
        return _taken(self.protocols, self.client_id, self.instance_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncing:
    """Only the leader sends `assignments`, by member."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)
    budget: GroupBudget = _NO_BUDGET


@dataclass(slots=True, kw_only=True)
class ClassicMember:
    """Its session doesn't expire while a request waits, except a new member's."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_seconds: float
    rebalance_seconds: float
    protocols: tuple[tuple[str, bytes], ...]
    expires: float
    owner: str = ""
    is_new: bool = True
    """Whether it has yet to be in a generation. It has no session until then, as it may not know its id."""
    joining: Ticket | None = None
    syncing: Ticket | None = None
    has_synced: bool = False
    assignment: bytes = b""

    @property
    def is_waiting(self) -> bool:
        return self.joining is not None or self.syncing is not None

    @property
    def may_expire(self) -> bool:
        return not self.is_waiting or (self.is_new and self.joining is not None)

    @property
    def size(self) -> int:
        return said(self.protocols) + len(self.assignment)

    @property
    def takes(self) -> int:
        return _taken(self.protocols, self.client_id, self.instance_id) + len(self.assignment)

    def metadata(self, protocol: str | None) -> bytes:
        return dict(self.protocols).get(protocol or "", b"")

    def seen(self, now: float) -> None:
        """A new member that waits to join keeps its deadline."""
        if not (self.is_new and self.joining is not None):
            self.expires = now + self.session_seconds

    def take_in(self, asked: Joining) -> None:
        self.client_id, self.host, self.owner = asked.client_id, asked.host, asked.budget.owner
        self.session_seconds, self.rebalance_seconds = asked.session_seconds, asked.rebalance_seconds
        self.protocols = asked.protocols


def said(protocols: tuple[tuple[str, bytes], ...]) -> int:
    return sum(len(name) + len(data) for name, data in protocols)


def _taken(protocols: tuple[tuple[str, bytes], ...], client_id: str, instance_id: str | None) -> int:
    ids = 2 * (len(client_id) + len(instance_id or ""))  # also in the id of the member
    return MEMBER_BYTES + ids + said(protocols) + ENTRY_BYTES * len(protocols)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Only the leader gets `members`: id, instance id and metadata."""

    ticket: Ticket
    error: ErrorCode = ErrorCode.none
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skips: bool = False
    members: tuple[tuple[str, str | None, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The answer to a SyncGroup."""

    ticket: Ticket
    error: ErrorCode = ErrorCode.none
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


Reply: TypeAlias = Joined | Synced
"""The answer to a request that waits."""
