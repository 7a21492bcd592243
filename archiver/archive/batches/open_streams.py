"""Streams that stay open between fetches, above all reused ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Final, TypeAlias
from weakref import WeakSet

from archiver.archive.batches.stream import BatchStream

_Key: TypeAlias = tuple[Hashable, Hashable]

_TRIED_SHARE: Final = 4
"""One of this many streams, at least one, may be unproven: else none could become proven."""


class OpenStreams:
    """At most `most` open streams of all sources. Thread-safe.

    Closes the stream unused for longest, if possible one never reused.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_proven = most - max(1, most // _TRIED_SHARE)
        self._lock = Lock()
        self._tried: OrderedDict[_Key, BatchStream] = OrderedDict()
        self._proven: OrderedDict[_Key, BatchStream] = OrderedDict()
        self._closed: WeakSet[Hashable] = WeakSet()

    def has(self, source: Hashable, place: Hashable) -> bool:
        with self._lock:
            return (source, place) in self._tried or (source, place) in self._proven

    def take(self, source: Hashable, place: Hashable) -> BatchStream | None:
        with self._lock:
            return self._proven.pop((source, place), None) or self._tried.pop((source, place), None)

    def keep(self, source: Hashable, place: Hashable, stream: BatchStream, *, is_proven: bool) -> bool:
        """Return False if the caller must close the stream. `is_proven`: it was reused."""
        key = (source, place)
        with self._lock:
            if not self._most or source in self._closed or key in self._tried or key in self._proven:
                return False
            (self._proven if is_proven else self._tried)[key] = stream
            if len(self._proven) > self._most_proven:
                old, unused = self._proven.popitem(last=False)
                self._tried[old] = unused
            is_full = len(self._tried) + len(self._proven) > self._most
            surplus = (self._tried or self._proven).popitem(last=False)[1] if is_full else None
        if surplus is not None:
            surplus.close()
        return True

    def close(self, source: Hashable) -> None:
        streams = []
        with self._lock:
            self._closed.add(source)
            for by_key in (self._tried, self._proven):
                own = [key for key in by_key if key[0] is source]
                streams += [by_key.pop(key) for key in own]
        for stream in streams:
            stream.close()
