"""Manifest lists that were written, for the next commit of their table."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock


class WrittenLists:
    """Thread-safe. A list of a hundred manifests has about 10 KB."""

    def __init__(self, most_bytes: int = 16 << 20) -> None:
        self._most = most_bytes
        self._lists: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def put(self, location: str, content: bytes) -> None:
        """Call it after the store took the list."""
        with self._lock:
            self._drop(location)
            if len(content) > self._most:
                return
            self._lists[location] = content
            self._bytes += len(content)
            while self._bytes > self._most:
                self._drop(next(iter(self._lists)))

    def take(self, location: str) -> bytes | None:
        """Remove the list: the next snapshot has another."""
        with self._lock:
            return self._drop(location)

    def _drop(self, location: str) -> bytes | None:
        content = self._lists.pop(location, None)
        self._bytes -= len(content or b"")
        return content
