"""The resources and clients that request handlers use."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from kio.schema.errors import ErrorCode

from archiver.access import ANONYMOUS, Access
from archiver.serve.groups import Coordinator, GroupBudget, GroupOffsetStore
from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.closing_log import ClosingLog
from archiver.serve.kafka.fetch_sessions import FetchSessions, SessionSlots
from archiver.serve.kafka.group_topics import GroupTopics
from archiver.serve.kafka.pace import ClientPace
from archiver.serve.kafka.pauses import Pauses
from archiver.serve.kafka.search_turns import SearchTurns
from archiver.serve.nodes import GroupDuty, JointCommits, NodeCluster
from archiver.serve.reading import ChunkReader, ServedTopic, ServedTopics
from archiver.serve.security import Attempts, Quotas, Session
from archiver.telemetry.serving import BudgetRefusals, Traffic
from catalog.registry import GroupClaim

Kept: TypeAlias = Callable[..., Awaitable[Any]]
_Element = TypeVar("_Element")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirects:
    """Seconds before clients are sent to another node.

    `coordinator`: before an answer that another node is the group's. `registry_away`: if the registry may be away from
    all nodes, they send their clients to one another for as long. `leader`: after the nodes agreed on leaders.
    """

    coordinator: float = 0.3
    registry_away: float = 3.0
    leader: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """`most_response_bytes` returns the current limit of a response."""

    cluster: NodeCluster
    topics: ServedTopics
    reader: ChunkReader
    most_response_bytes: Callable[[], int]
    coordinator: Coordinator
    offsets: GroupOffsetStore
    kept: Kept
    """Calls the store of offsets, in a worker's thread."""
    commits: JointCommits = field(default_factory=JointCommits)
    group_topics: GroupTopics = field(default_factory=GroupTopics)
    session_slots: SessionSlots = field(default_factory=SessionSlots)
    searches: SearchTurns = field(default_factory=SearchTurns)
    quotas: Quotas = field(default_factory=Quotas)
    traffic: Traffic = field(default_factory=Traffic)
    attempts: Attempts = field(default_factory=Attempts)
    budgets: BudgetRefusals = field(default_factory=BudgetRefusals)
    most_metadata_bytes: int = 4096
    """What a client may commit beside an offset."""
    redirects: Redirects = field(default_factory=Redirects)
    spreads_answers: bool = True
    """Whether clients that pause while their queue is full are answered no faster than they take records."""
    ending: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Done when the server ends: waiting fetches are answered with the records that there are."""

    async def topic(self, name: str | None, topic_id: UUID | None = None) -> ServedTopic | None:
        if topic_id is not None:
            return await self.topics.identified(topic_id)
        return await self.topics.named(name) if name else None

    def budget(self, request: Request) -> GroupBudget:
        return self.quotas.group_budget(request.access.principal, request.client.network)

    def without(self, name: str, away: ErrorCode = ErrorCode.leader_not_available) -> ErrorCode:
        """`away` is for a topic that can't be opened now.

        Consumers drop a missing topic, and wait for one without a leader. A topic that can never be opened must not
        hold up a consumer's other topics.
        """
        return away if self.topics.is_away(name) else ErrorCode.unknown_topic_or_partition


@dataclass(slots=True)
class Client:
    address: str
    login: Session
    turns: ClientTurns
    closing_log: ClosingLog
    sessions: FetchSessions
    pace: ClientPace = field(default_factory=ClientPace)
    pauses: Pauses | None = None
    """For clients that pause while their queue is full, by the software name of their first request."""
    member: tuple[str, str] | None = None
    """The group and the id of the member that sends its heartbeats here."""

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def network(self) -> str:
        """The address, or the /64 of an IPv6 address: its owner can use all of them."""
        return payer_of(self.host)

    @property
    def payer(self) -> str:
        """The principal, or before login the network, that budgets are charged to."""
        access = self.login.access
        return self.network if access is None or access.principal == ANONYMOUS else str(access.principal)


def payer_of(host: str) -> str:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:  # noqa: PLR2004 - the protocol's
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`body` is kio's message."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    body: Any
    client: Client
    duty: GroupDuty | None = None
    """This node's duty for the group that the request is about, if it coordinates it."""

    @property
    def claim(self) -> GroupClaim | None:
        return None if self.duty is None else self.duty.claim

    @property
    def access(self) -> Access:
        access = self.client.login.access
        assert access is not None, "a request was let through before its client was known"
        return access

    async def listed(self, elements: Iterable[_Element]) -> list[_Element]:
        return [element async for element in self.in_turns(elements)]

    def in_turns(self, elements: Iterable[_Element]) -> AsyncIterator[_Element]:
        """Other clients get turns."""
        return self.client.turns.each(elements)
