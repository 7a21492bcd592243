"""Members of a group that uses the classic protocol, and what they are answered. Values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from kio.schema.errors import ErrorCode

Ticket: TypeAlias = int
"""Stands for a request that waits for its answer."""


class GroupState(Enum):
    """Where a group is, in Kafka's words."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """A request to join. `needs_id` says that a client without a member id is given one first (version 4)."""

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

    @property
    def size(self) -> int:
        """How much it says of the member."""
        return said(self.protocols)


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncing:
    """A request for an assignment. Only the leader's has `assignments`, by member. Old clients name no protocol."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Member:
    """A member. `joining` and `syncing` are its requests that wait; while one does, its session doesn't expire."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_seconds: float
    rebalance_seconds: float
    protocols: tuple[tuple[str, bytes], ...]
    expires: float
    joining: Ticket | None = None
    syncing: Ticket | None = None
    has_synced: bool = False
    assignment: bytes = b""

    @property
    def is_waiting(self) -> bool:
        """Whether a request of it waits for the others."""
        return self.joining is not None or self.syncing is not None

    @property
    def size(self) -> int:
        """How much it said, and what it was assigned."""
        return said(self.protocols) + len(self.assignment)

    def metadata(self, protocol: str | None) -> bytes:
        """What it said for a protocol."""
        return dict(self.protocols).get(protocol or "", b"")

    def seen(self, now: float) -> None:
        """Begin its session anew."""
        self.expires = now + self.session_seconds


def said(protocols: tuple[tuple[str, bytes], ...]) -> int:
    """The bytes of what a member says for its protocols."""
    return sum(len(name) + len(data) for name, data in protocols)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The answer to a join. Only the leader has `members`: id, instance id and metadata of each."""

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
    """The answer to a sync: the member's assignment."""

    ticket: Ticket
    error: ErrorCode = ErrorCode.none
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


Reply: TypeAlias = Joined | Synced
"""The answer to a request that waits."""
