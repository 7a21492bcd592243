"""A classic group with its time and answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kio.schema.errors import ErrorCode

from archiver.serve.groups import ClassicGroup, GroupState, Joined, Joining, Syncing

SESSION, REBALANCE, DELAY = 10.0, 30.0, 0.5
RANGE = (("range", b"topics"),)
OK = ErrorCode.none


def joining(member_id: str = "", **changes: Any) -> Joining:
    values = {
        "member_id": member_id,
        "instance_id": None,
        "client_id": "c",
        "host": "/127.0.0.1",
        "session_seconds": SESSION,
        "rebalance_seconds": REBALANCE,
        "protocol_type": "consumer",
        "protocols": RANGE,
    }
    return Joining(**{**values, **changes})


@dataclass(slots=True)
class Course:
    group: ClassicGroup = field(default_factory=lambda: ClassicGroup("g", initial_delay=DELAY))
    now: float = 0.0
    answers: dict[int, Any] = field(default_factory=dict)
    tickets: int = 0

    def take(self, replies: Any) -> None:
        for reply in replies:
            assert reply.ticket not in self.answers, "answered twice"
            self.answers[reply.ticket] = reply

    def join(self, member_id: str = "", **changes: Any) -> int:
        self.tickets += 1
        self.take(self.group.join(self.now, self.tickets, joining(member_id, **changes)))
        return self.tickets

    def named(self, **changes: Any) -> tuple[str, int]:
        """Join as clients since version 4, which request an id first."""
        refusal = self.answers[self.join(**changes)]
        assert refusal.error == ErrorCode.member_id_required
        return refusal.member_id, self.join(refusal.member_id, **changes)

    def sync(self, joined: Joined, **changes: Any) -> int:
        self.tickets += 1
        assignments = {member: member.encode() for member, _, _ in joined.members}
        syncing = Syncing(
            member_id=joined.member_id,
            instance_id=changes.get("instance_id"),
            generation=joined.generation,
            assignments=assignments,
        )
        self.take(self.group.sync(self.now, self.tickets, syncing))
        return self.tickets

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while self.group.deadline() <= until:
            self.now = max(self.now, self.group.deadline())
            self.take(self.group.tick(self.now))
        self.now = until

    def stable(self, count: int) -> list[Joined]:
        tickets = [self.named()[1] for _ in range(count)]
        self.wait(DELAY)
        joined = [self.answers[ticket] for ticket in tickets]
        assert {answer.error for answer in joined} == {OK}
        for answer in sorted(joined, key=lambda answer: bool(answer.members)):
            self.sync(answer)
        assert self.group.state is GroupState.STABLE
        return joined
