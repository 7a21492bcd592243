"""Fetch sessions (KIP-227), without I/O. A session ends with its connection.

Without a slot, or if a topic can't be read, requests are sessionless.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode

PartitionKey: TypeAlias = tuple[str | UUID | None, int]
"""A topic, by name or by id, and a partition."""

INITIAL: Final = 0
FINAL: Final = -1
_MOST_EPOCH: Final = 2**31 - 1
MOST_PARTITIONS: Final = 20_000
"""Of one session. A client that fetches more of a node names them all in each request."""
_SLOTS: Final = 1000
"""As many sessions as a Kafka broker has (`max.incremental.fetch.session.cache.slots`)."""
_PARTITIONS_OF_ALL: Final = 200_000
_SHARE: Final = 2
"""One payer gets half of the slots and partitions."""
_IDLE_SECONDS: Final = 120.0
"""A session that was not used for this long makes room for another one, as in Kafka."""
_NO_SESSION: Final = 0


@dataclass(slots=True)
class FetchPosition:
    """`sent`: the high watermark and log start sent last."""

    offset: int
    max_bytes: int
    sent: tuple[int, int] | None = None
    """High watermark and log start."""


@dataclass(slots=True)
class FetchSession:
    """Least recently returned first. `epoch` is the next request's."""

    number: int
    by_id: bool
    epoch: int = 1
    partitions: OrderedDict[PartitionKey, FetchPosition] = field(default_factory=OrderedDict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFetch:
    """If `is_incremental`, unchanged partitions are left out."""

    partitions: Mapping[PartitionKey, FetchPosition]
    session: FetchSession | None = None
    is_incremental: bool = False

    @property
    def session_id(self) -> int:
        return self.session.number if self.session else _NO_SESSION

    def includes(self, key: PartitionKey, state: tuple[int, int], *, has_news: bool) -> bool:
        """`state`: high watermark and log start; `has_news`: there are records or an error."""
        position = self.partitions[key]
        sent = has_news or not self.is_incremental or position.sent != state
        if self.session is not None:
            position.sent = state if sent else position.sent
            if has_news:
                self.session.partitions.move_to_end(key)
        return sent


@dataclass(slots=True)
class _SessionSlot:
    owner: FetchSessions
    partitions: int
    used_at: float


class SessionSlots:
    """Bounds sessions of all connections. Use it from one event loop."""

    def __init__(
        self,
        slots: int = _SLOTS,
        partitions: int = _PARTITIONS_OF_ALL,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most, self._most_partitions = slots, partitions
        self._clock = clock
        self._slots: OrderedDict[int, _SessionSlot] = OrderedDict()
        self._taken: Counter[str] = Counter()
        self._partitions: Counter[str] = Counter()
        self.partitions = 0
        """How many partitions all sessions have."""

    @property
    def sessions(self) -> int:
        return len(self._slots)

    def keep(self, owner: FetchSessions, session: FetchSession) -> bool:
        """False, without its old slot, if there is no room."""
        self.drop(session.number)
        size, now = len(session.partitions), self._clock()
        while self._slots and not self._has_room(size):
            number, oldest = next(iter(self._slots.items()))
            if now - oldest.used_at < _IDLE_SECONDS:
                return False
            oldest.owner.forget(number)
        mine = self._partitions[owner.payer] + size
        if not self._has_room(size) or self._taken[owner.payer] >= self._most // _SHARE:
            return False
        if mine > self._most_partitions // _SHARE:
            return False
        self._slots[session.number] = _SessionSlot(owner, size, now)
        self._taken[owner.payer] += 1
        self._partitions[owner.payer] = mine
        self.partitions += size
        return True

    def drop(self, number: int) -> None:
        slot = self._slots.pop(number, None)
        if slot is not None:
            self.partitions -= slot.partitions
            for counts, amount in ((self._taken, 1), (self._partitions, slot.partitions)):
                counts[slot.owner.payer] -= amount
                if not counts[slot.owner.payer]:
                    del counts[slot.owner.payer]

    def _has_room(self, size: int) -> bool:
        return len(self._slots) < self._most and self.partitions + size <= self._most_partitions


class FetchSessions:
    """A connection's session; a new one ends it."""

    def __init__(self, slots: SessionSlots | None = None, payer: str = "") -> None:
        self._slots = slots or SessionSlots()
        self._session: FetchSession | None = None
        self.payer = payer

    def begin(
        self,
        session_id: int,
        epoch: int,
        *,
        by_id: bool,
        positions: Mapping[PartitionKey, FetchPosition],
        forgotten: Iterable[PartitionKey] = (),
        is_kept: bool = True,
    ) -> SessionFetch | ErrorCode:
        """Without `is_kept`, partitions aren't remembered."""
        if epoch in (INITIAL, FINAL):
            self.forget(session_id)
            if epoch == FINAL or not positions or len(positions) > MOST_PARTITIONS or not is_kept:
                return SessionFetch(partitions=positions)
            return self._opened(by_id=by_id, positions=positions)
        session = self._known(session_id, epoch, by_id=by_id)
        if not isinstance(session, FetchSession):
            return session
        session.epoch = epoch + 1 if epoch < _MOST_EPOCH else 1
        for key, partition in positions.items():
            before = session.partitions.get(key)
            if before is None:
                session.partitions[key] = partition
            else:
                before.offset, before.max_bytes = partition.offset, partition.max_bytes
        for key in forgotten:
            session.partitions.pop(key, None)
        if len(session.partitions) > MOST_PARTITIONS or not is_kept or not self._slots.keep(self, session):
            self.forget(session_id)
            return ErrorCode.fetch_session_id_not_found  # its client sends all of them next
        return SessionFetch(partitions=session.partitions, session=session, is_incremental=True)

    def forget(self, session_id: int) -> None:
        if self._session is not None and self._session.number == session_id:
            self.close()

    def close(self) -> None:
        if self._session is not None:
            self._slots.drop(self._session.number)
            self._session = None

    def _known(self, session_id: int, epoch: int, *, by_id: bool) -> FetchSession | ErrorCode:
        session = self._session
        if session is None or session.number != session_id:
            return ErrorCode.fetch_session_id_not_found
        if session.by_id != by_id:
            return ErrorCode.fetch_session_topic_id_error
        return session if session.epoch == epoch else ErrorCode.invalid_fetch_session_epoch

    def _opened(self, *, by_id: bool, positions: Mapping[PartitionKey, FetchPosition]) -> SessionFetch:
        self.close()
        session = FetchSession(secrets.randbelow(_MOST_EPOCH) + 1, by_id, partitions=OrderedDict(positions))
        if not self._slots.keep(self, session):
            return SessionFetch(partitions=positions)
        self._session = session
        return SessionFetch(partitions=session.partitions, session=session)
