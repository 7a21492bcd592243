"""What a client sends, and word of its end: work for a client that is gone is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class ClientReader(asyncio.StreamReader):
    """Calls `on_end` once the client sends no more: it closed the connection, or its half of it."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        self.on_end: Callable[[], None] = lambda: None

    def feed_eof(self) -> None:
        """Take in the end of what the client sends."""
        super().feed_eof()
        self.on_end()

    def set_exception(self, exc: Exception) -> None:
        """Take in that the connection broke."""
        super().set_exception(exc)
        self.on_end()
