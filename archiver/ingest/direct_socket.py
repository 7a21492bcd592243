"""Sockets to brokers that are closed as soon as an attempt to connect fails.

kafka-python leaves the sockets of failed attempts to the garbage collector, and a broker that is down for an hour makes
thousands of them. Its registry of connection schemes is the place to say otherwise.
"""

from __future__ import annotations

from socket import socket as Socket  # noqa: N812 - the base class has a method of that name
from typing import Any, Final

from kafka.net.inet import KafkaNetSocket

SCHEME: Final = "direct"


class DirectSocket(KafkaNetSocket):  # type: ignore[misc]
    """Connects without a proxy; chosen by the url `direct://`."""

    SCHEMES = (SCHEME,)

    def __init__(self, proxy_url: str | None = None) -> None:
        super().__init__(proxy_url)
        self._made: Socket | None = None

    def socket(self, *kind: int) -> Socket:
        """A socket, not connected yet."""
        self._made = super().socket(*kind)
        return self._made

    async def connect(self, *where: Any, **options: Any) -> Any:
        """A connected socket."""
        try:
            return await super().connect(*where, **options)
        except BaseException:
            if self._made is not None:
                self._made.close()
            raise
