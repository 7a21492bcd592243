"""Detects disconnected clients with unread bytes, with epoll (EPOLLRDHUP, EPOLLHUP).

asyncio stops reading when its buffer is full, and then sees neither EOF nor reset.
"""

from __future__ import annotations

import asyncio
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

Ended: TypeAlias = Callable[[bool], None]
"""Called when a client sends no more. True if the connection is broken: the client takes no answers either."""

_MOST_EVENTS: Final = 1024


class Departures:
    """Watches sockets. Use and `close` it in one event loop."""

    def __init__(self) -> None:
        self._ended: dict[int, Ended] = {}
        self._epoll: select.epoll | None = select.epoll() if sys.platform == "linux" else None
        self._is_watching = False

    def watch(self, socket: int, ended: Ended) -> None:
        """Call `ended` when the client closes its half, and again when the connection breaks."""
        if self._epoll is None:
            return
        if not self._is_watching:
            self._is_watching = True
            asyncio.get_running_loop().add_reader(self._epoll, self._look)
        self._ended[socket] = ended
        self._epoll.register(socket, select.EPOLLRDHUP | select.EPOLLONESHOT)

    def forget(self, socket: int, ended: Ended) -> None:
        """Do nothing if the number belongs to another client now."""
        if self._epoll is not None and self._ended.get(socket) is ended:
            del self._ended[socket]
            with suppress(OSError):  # it is closed
                self._epoll.unregister(socket)

    def close(self) -> None:
        if self._epoll is None:
            return
        if self._is_watching:
            asyncio.get_running_loop().remove_reader(self._epoll)
        self._epoll.close()

    def _look(self) -> None:
        assert self._epoll is not None
        for socket, events in self._epoll.poll(0, _MOST_EVENTS):
            is_broken = bool(events & (select.EPOLLHUP | select.EPOLLERR))
            if not is_broken:
                self._epoll.modify(socket, select.EPOLLONESHOT)  # hang-ups and errors are reported all the same
            if (ended := self._ended.get(socket)) is not None:
                ended(is_broken)
