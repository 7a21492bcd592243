"""Log lines for connections that the server closes, limited per address and minute."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_LOG: Final = logging.getLogger(__name__)
_LINES: Final = 5
_LINES_OF_ALL: Final = 100
_SECONDS: Final = 60.0
_MOST_HOSTS: Final = 1000


@dataclass(slots=True)
class _Minute:
    lines: int = 0
    left_out: int = 0
    why: str = ""


class ClosingLog:
    """Use it from one event loop."""

    def __init__(self, later: Callable[[float, Callable[[], None]], object] | None = None) -> None:
        self._later = later
        self._hosts: dict[str, _Minute] = {}
        self._all = _Minute()
        self.closed = 0
        """Connections that were closed as their client did something wrong."""

    def write(self, address: str, why: object, *, error: Exception | None = None) -> None:
        """`address` is HOST:PORT."""
        self.closed += 1
        host = address.rpartition(":")[0]
        if not self._hosts:
            (self._later or asyncio.get_running_loop().call_later)(_SECONDS, self._end_minute)
        minute = self._hosts.get(host)
        if minute is None:
            minute = self._all if len(self._hosts) >= _MOST_HOSTS else self._hosts.setdefault(host, _Minute())
        if minute.lines < _LINES and self._all.lines < _LINES_OF_ALL:
            minute.lines += 1
            self._all.lines += 1
            _LOG.warning("connection of %s closed: %s", address, why, exc_info=error)
        else:
            minute.left_out += 1
            minute.why = str(why)

    def _end_minute(self) -> None:
        hosts = sorted(((minute.left_out, host, minute.why) for host, minute in self._hosts.items()), reverse=True)
        rest = self._all.left_out
        for number, (left_out, host, why) in enumerate(hosts):
            if number >= _LINES:
                rest += left_out
            elif left_out:
                _LOG.warning("%d more connections of %s closed within a minute; the last: %s", left_out, host, why)
        if rest:
            _LOG.warning("%d more connections of other addresses closed within a minute", rest)
        self._hosts.clear()
        self._all = _Minute()
