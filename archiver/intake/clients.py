"""The clients of a topic and their last batches. No I/O.

A client numbers its batches from 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from archiver.errors import BadBatch, BatchGap, BatchTooOld, ClientFenced, ClientTaken
from archiver.intake.batches import Acknowledgement, BatchPart, IntakeBatch, LoggedBatch

KEPT_ANSWERS: Final = 64
KEPT_PARTS: Final = 1024
"""The most parts of a client's kept answers, but the last answer is always kept. Each segment begins with all."""


class ClientPosition(NamedTuple):
    incarnation: int
    next_batch_id: int


@dataclass(slots=True)
class _Client:
    number: int
    incarnation: int = 0
    next_id: int = 0
    owner: str = ""
    answers: deque[tuple[str, Acknowledgement]] = field(default_factory=lambda: deque(maxlen=KEPT_ANSWERS))

    def keep(self, batch: LoggedBatch) -> None:
        self.answers.append((batch.digest, Acknowledgement(batch.batch_id, batch.parts)))
        while len(self.answers) > 1 and sum(len(answer.parts) for _, answer in self.answers) > KEPT_PARTS:
            self.answers.popleft()


class Clients:
    def __init__(self, *, most: int) -> None:
        self._most = most
        self._clients: dict[str, _Client] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._clients))

    def position(self, client: str) -> ClientPosition:
        state = self._clients.get(client)
        return ClientPosition(0, 0) if state is None else ClientPosition(state.incarnation, state.next_id)

    def number(self, client: str) -> int:
        state = self._clients.get(client)
        return len(self._clients) if state is None else state.number

    def judge(self, batch: IntakeBatch) -> Acknowledgement | None:
        """Return the answer of a repeated batch, None for a new one.

        Raises ClientTaken, BatchGap, BatchTooOld, ClientFenced, and BadBatch for other contents with the same id.
        """
        self.check_owner(batch.client, batch.principal)
        client = self._clients.get(batch.client)
        if client is None:
            self.check_room(batch.client)
            client = _Client(number=-1)
        if batch.incarnation < client.incarnation:
            raise ClientFenced(
                "a newer incarnation of the client has taken over: this one must stop, or take over by the action"
                " `fence`",
                client=batch.client,
                incarnation=batch.incarnation,
                current=client.incarnation,
            )
        if batch.batch_id == client.next_id:
            return None
        if batch.batch_id > client.next_id:
            raise BatchGap(
                "batch ids of a client have no gaps: send the expected batch first",
                client=batch.client,
                batch_id=batch.batch_id,
                expected=client.next_id,
            )
        for digest, answer in client.answers:
            if answer.batch_id == batch.batch_id:
                return self._repeated(batch, digest, answer)
        raise BatchTooOld(
            f"the batch was taken in before. The answers of the last {KEPT_ANSWERS} batches are kept, or of fewer if"
            f" they have more than {KEPT_PARTS:,} parts",
            client=batch.client,
            batch_id=batch.batch_id,
            expected=client.next_id,
        )

    def accept(self, batch: LoggedBatch) -> None:
        client = self._clients.setdefault(batch.client, _Client(number=batch.number))
        client.incarnation = batch.incarnation
        client.owner = batch.principal or client.owner
        client.next_id = batch.batch_id + 1
        client.keep(batch)

    def fence(self, client: str, incarnation: int, principal: str = "") -> None:
        state = self._clients.setdefault(client, _Client(number=self.number(client)))
        state.incarnation = incarnation
        state.owner = principal or state.owner

    def check_owner(self, client: str, principal: str) -> None:
        """Raises ClientTaken. An empty principal owns no name."""
        state = self._clients.get(client)
        if state is not None and state.owner not in ("", principal):
            raise ClientTaken(
                "another principal sends batches with this client name: use another name, or the credentials of before",
                client=client,
                principal=principal or "anonymous",
            )

    def check_room(self, client: str) -> None:
        """Raises BadBatch."""
        if client not in self._clients and len(self._clients) >= self._most:
            raise BadBatch(
                f"the topic has {self._most:,} clients, the most that `flight.max_clients` allows: use the name of a"
                " client again, or raise it",
                client=client,
            )

    def to_json(self, *, answers: bool = True) -> dict[str, Any]:
        return {
            name: [
                client.number,
                client.incarnation,
                client.next_id,
                [[digest, answer.batch_id, answer.parts] for digest, answer in client.answers if answers],
                *([client.owner] if client.owner else []),
            ]
            for name, client in self._clients.items()
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, most: int) -> Clients:
        clients = cls(most=most)
        for name, (number, incarnation, next_id, answers, *owner) in value.items():
            client = _Client(number=number, incarnation=incarnation, next_id=next_id, owner="".join(owner))
            for digest, batch_id, parts in answers:
                client.answers.append((digest, Acknowledgement(batch_id, tuple(BatchPart(*part) for part in parts))))
            clients._clients[name] = client
        return clients

    @staticmethod
    def _repeated(batch: IntakeBatch, digest: str, answer: Acknowledgement) -> Acknowledgement:
        if digest != batch.digest:
            raise BadBatch(
                "the batch id was used for other rows: two producers have the same client name, or a client counts from"
                " 0 again. Give each producer a name, and continue at the batch id of the action `position`",
                client=batch.client,
                batch_id=batch.batch_id,
            )
        return answer
