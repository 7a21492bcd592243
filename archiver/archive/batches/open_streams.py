"""Streams that stay open between fetches, so that a reader that goes on in order finds its files open.

Readers that come seldom must not close the streams of those that come often: each of theirs is of use once in a long
time, if ever. So a stream that somebody has come back to is closed only for others of that kind.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Final, TypeAlias
from weakref import WeakSet

from archiver.archive.batches.stream import BatchStream

_Key: TypeAlias = tuple[Hashable, Hashable]

_TRIED_SHARE: Final = 4
"""One of so many streams, at least one, may be one that nobody has come back to yet: else none ever could."""


class OpenStreams:
    """At most `most` open streams of all sources that share this. Safe to share between threads.

    Of those that nobody has come back to, the one unused for longest is closed for another. Where there are few of
    them, it is the one unused for longest of the others. A source that was closed keeps none.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_proven = most - max(1, most // _TRIED_SHARE)
        self._lock = Lock()
        self._tried: OrderedDict[_Key, BatchStream] = OrderedDict()
        self._proven: OrderedDict[_Key, BatchStream] = OrderedDict()
        self._closed: WeakSet[Hashable] = WeakSet()

    def has(self, source: Hashable, place: Hashable) -> bool:
        """Whether a source has left a stream open at this place."""
        with self._lock:
            return (source, place) in self._tried or (source, place) in self._proven

    def take(self, source: Hashable, place: Hashable) -> BatchStream | None:
        """Take the stream out that a source has left open at this place; None if there is none."""
        with self._lock:
            return self._proven.pop((source, place), None) or self._tried.pop((source, place), None)

    def keep(self, source: Hashable, place: Hashable, stream: BatchStream, *, is_proven: bool) -> bool:
        """Keep a stream open for a later call; False if it can't be kept, and the caller has to close it.

        `is_proven` says that somebody came back to it before.
        """
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
        """Close the open streams of a source, and keep none of it from now on."""
        streams = []
        with self._lock:
            self._closed.add(source)
            for held in (self._tried, self._proven):
                own = [key for key in held if key[0] is source]
                streams += [held.pop(key) for key in own]
        for stream in streams:
            stream.close()
