"""Fetch sessions (KIP-227): what a client fetches, remembered, so that it sends only what changes.

A session lives as long as its connection: a client that connects again begins a new one, as it does after any error.
Partitions beyond a bound are fetched without a session, so that a small request never asks for work without end.
No I/O.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode

Place: TypeAlias = tuple[str | UUID | None, int]
"""A topic, by name or by id, and a partition."""

INITIAL: Final = 0
FINAL: Final = -1
_MOST_EPOCH: Final = 2**31 - 1
_MOST_SESSIONS: Final = 2
_MOST_PARTITIONS: Final = 20_000
"""Of one session. A client that fetches more of a node names them all in each request."""
_NO_SESSION: Final = 0


@dataclass(slots=True)
class Wanted:
    """What is fetched of a partition, and what the client was last told of it."""

    offset: int
    max_bytes: int
    told: tuple[int, int] | None = None
    """High watermark and log start."""


@dataclass(slots=True)
class FetchSession:
    """The partitions of a session, those that wait longest first. `epoch` is the one that the next request has."""

    number: int
    by_id: bool
    epoch: int = 1
    partitions: OrderedDict[Place, Wanted] = field(default_factory=OrderedDict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What to fetch for one request. `is_incremental` says that the answer leaves out what is as it was told."""

    partitions: Mapping[Place, Wanted]
    session: FetchSession | None = None
    is_incremental: bool = False

    @property
    def session_id(self) -> int:
        """The session's id; 0 without one."""
        return self.session.number if self.session else _NO_SESSION

    def tells(self, place: Place, state: tuple[int, int], *, has_news: bool) -> bool:
        """Whether a partition is part of the answer; `state` is its high watermark and log start.

        `has_news` says that there are records or an error. What is told once isn't told again.
        """
        wanted = self.partitions[place]
        told = has_news or not self.is_incremental or wanted.told != state
        if self.session is not None:
            wanted.told = state if told else wanted.told
            if has_news:
                self.session.partitions.move_to_end(place)
        return told


class FetchSessions:
    """The sessions of one connection."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def begin(
        self,
        session_id: int,
        epoch: int,
        *,
        by_id: bool,
        wanted: Mapping[Place, Wanted],
        forgotten: Iterable[Place] = (),
    ) -> Begun | ErrorCode:
        """Take in a request; say what to fetch for it, or which error to answer with."""
        if epoch in (INITIAL, FINAL):
            self._sessions.pop(session_id, None)
            if epoch == FINAL or not wanted or len(wanted) > _MOST_PARTITIONS:
                return Begun(partitions=wanted)
            return self._opened(by_id=by_id, wanted=wanted)
        session = self._known(session_id, epoch, by_id=by_id)
        if not isinstance(session, FetchSession):
            return session
        session.epoch = epoch + 1 if epoch < _MOST_EPOCH else 1
        for place, each in wanted.items():
            known = session.partitions.get(place)
            if known is None:
                session.partitions[place] = each
            else:
                known.offset, known.max_bytes = each.offset, each.max_bytes
        for place in forgotten:
            session.partitions.pop(place, None)
        if len(session.partitions) > _MOST_PARTITIONS:
            del self._sessions[session_id]
            return ErrorCode.fetch_session_id_not_found  # its client sends all of them next
        return Begun(partitions=session.partitions, session=session, is_incremental=True)

    def _known(self, session_id: int, epoch: int, *, by_id: bool) -> FetchSession | ErrorCode:
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.fetch_session_id_not_found
        if session.by_id != by_id:
            return ErrorCode.fetch_session_topic_id_error
        return session if session.epoch == epoch else ErrorCode.invalid_fetch_session_epoch

    def _opened(self, *, by_id: bool, wanted: Mapping[Place, Wanted]) -> Begun:
        number = secrets.randbelow(_MOST_EPOCH) + 1
        session = FetchSession(number, by_id, partitions=OrderedDict(wanted))
        self._sessions[number] = session
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return Begun(partitions=session.partitions, session=session)
