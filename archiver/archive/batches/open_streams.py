"""Streams that stay open between fetches, so that a reader that goes on in order finds its files open."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import TypeAlias
from weakref import WeakSet

from archiver.archive.batches.stream import BatchStream

_Key: TypeAlias = tuple[Hashable, Hashable]


class OpenStreams:
    """At most `most` open streams of all sources that share this. Safe to share between threads.

    The one unused for longest is closed for another. A source that was closed keeps none.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._idle: OrderedDict[_Key, BatchStream] = OrderedDict()
        self._closed: WeakSet[Hashable] = WeakSet()

    def take(self, source: Hashable, place: Hashable) -> BatchStream | None:
        """Take the stream out that a source has left open at this place; None if there is none."""
        with self._lock:
            return self._idle.pop((source, place), None)

    def keep(self, source: Hashable, place: Hashable, stream: BatchStream) -> bool:
        """Keep a stream open for a later call; False if it can't be kept, and the caller has to close it."""
        key = (source, place)
        with self._lock:
            if not self._most or source in self._closed or key in self._idle:
                return False
            self._idle[key] = stream
            surplus = self._idle.popitem(last=False)[1] if len(self._idle) > self._most else None
        if surplus is not None:
            surplus.close()
        return True

    def close(self, source: Hashable) -> None:
        """Close the open streams of a source, and keep none of it from now on."""
        with self._lock:
            self._closed.add(source)
            own = [key for key in self._idle if key[0] is source]
            streams = [self._idle.pop(key) for key in own]
        for stream in streams:
            stream.close()
