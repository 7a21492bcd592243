"""A stream reader that reports a connection's end, fed little at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

READ_BYTES: Final = 32 << 10
"""What is read from a socket at a time, and what a reader holds before it stops reading."""


class ClientReader(asyncio.StreamReader):
    """Calls `on_end` when the client sends no more, with True if the connection is broken."""

    def __init__(self) -> None:
        super().__init__(limit=READ_BYTES // 2)  # it stops at twice its limit
        self.on_end: Callable[[bool], None] = lambda _: None

    def feed_eof(self) -> None:
        super().feed_eof()
        self.on_end(False)  # noqa: FBT003 - a callback

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.on_end(True)  # noqa: FBT003 - a callback


class ClientProtocol(asyncio.StreamReaderProtocol, asyncio.BufferedProtocol):
    """Reads into one buffer for all connections: other protocols allocate 256 KiB for each read."""

    def __init__(self, reader: ClientReader, buffer: memoryview) -> None:
        super().__init__(reader)
        self._unread: ClientReader | None = reader
        self._buffer = buffer

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as BufferedProtocol has it
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._unread is not None:
            self._unread.feed_data(self._buffer[:nbytes])

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unread = None  # asyncio's TLS keeps this protocol, and the reader has the transport
