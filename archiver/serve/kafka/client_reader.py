"""A stream reader that reports the end of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class ClientReader(asyncio.StreamReader):
    """Call `on_end` once the client sends no more, with True if the connection is broken."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        self.on_end: Callable[[bool], None] = lambda _: None

    def feed_eof(self) -> None:
        super().feed_eof()
        self.on_end(False)  # noqa: FBT003 - a callback

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.on_end(True)  # noqa: FBT003 - a callback
