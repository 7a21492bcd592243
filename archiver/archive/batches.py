"""Whole record batches of a topic's archive, as a server hands them to Kafka clients.

Each call names where to go on and how many bytes it may take. A few streams stay open after a call, so that a client
that reads in order finds its files open and its rows decoded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol, Self, TypeAlias

from archiver.archive.batch_stream import BatchStream
from archiver.archive.borders import BatchSizes
from archiver.archive.topic_archive import TopicArchive
from archiver.errors import ReplayError
from archiver.wire.encode import Compression
from schema_mapping.errors import ContextError

_Key: TypeAlias = tuple["BatchCursor", Compression]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCursor:
    """Where a reader of one partition goes on: the next offset it wants.

    It holds for any process and any snapshot of the table, whatever becomes of the files.
    """

    partition: int
    offset: int

    def __post_init__(self) -> None:
        if self.partition < 0 or not 0 <= self.offset < 1 << 63:
            raise ValueError(f"no partition has such an offset: {self.text}")

    @property
    def text(self) -> str:
        """The cursor as text, `3@1200`."""
        return f"{self.partition}@{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a cursor's text; ValueError where it is none."""
        partition, _, offset = text.partition("@")
        return cls(partition=int(partition), offset=int(offset))


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedBatches:
    """Whole batches of format v2, one after the other over all `parts`, and where to go on after them.

    `end` is the offset after the last archived one when these were read: the high watermark.
    """

    parts: tuple[memoryview, ...]
    cursor: BatchCursor
    end: int

    @property
    def size(self) -> int:
        """The bytes of all batches."""
        return sum(map(len, self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """How batches are made, and how much is kept for readers that come back.

    `spans_gaps`: a batch's last offset lies just before the next batch, and the last one's before the archive's end, so
    that no client has to ask for offsets without a record. Else each batch ends where it ended in Kafka.
    `open_streams`: so many readers' places are kept open between calls; each holds one row group as its file has it and
    some 16 MiB of rows, or one batch where that is larger.
    """

    sizes: BatchSizes = field(default_factory=BatchSizes)
    spans_gaps: bool = False
    open_streams: int = 8

    def __post_init__(self) -> None:
        if self.open_streams < 0:
            raise ValueError(f"open_streams can't be negative, got {self.open_streams}")


def never() -> bool:
    """Don't cancel."""
    return False


class BatchSource(Protocol):
    """Where a server gets the batches of one topic. Safe to share between threads."""

    def fetch(
        self,
        cursor: BatchCursor,
        max_bytes: int,
        *,
        compression: Compression = "original",
        must_give: bool = True,
        is_cancelled: Callable[[], bool] = never,
    ) -> FetchedBatches:
        """Return the batches from the cursor on that fit into `max_bytes`; none at the end.

        With `must_give` the first batch is returned even if it is larger, as Kafka does for the first partition of a
        response. The first batch may begin before the cursor, but holds no record from before it. Where `is_cancelled`
        says so, the call returns what it has so far. Errors name topic, partition and offset; batches before the place
        of an error are returned first, and the next call raises it.
        """

    def close(self) -> None:
        """Close all files. A call that is under way ends first; later ones raise ReplayError."""


class ArchivedBatches:
    """A BatchSource over a topic's archive. The archive's own `refresh` makes it see what was archived since."""

    def __init__(self, archive: TopicArchive, options: BatchOptions | None = None) -> None:
        self._archive = archive
        self._options = options or BatchOptions()
        self._lock = Lock()
        self._idle: OrderedDict[_Key, BatchStream] = OrderedDict()
        self._is_closed = False

    def fetch(
        self,
        cursor: BatchCursor,
        max_bytes: int,
        *,
        compression: Compression = "original",
        must_give: bool = True,
        is_cancelled: Callable[[], bool] = never,
    ) -> FetchedBatches:
        """Return the next batches; see BatchSource."""
        stream = self._stream(cursor, compression)
        is_kept = False
        try:
            parts, error = stream.take(max_bytes, must_give=must_give, is_cancelled=is_cancelled)
            if error is not None and not parts:
                raise self._placed(error, cursor.partition, stream.offset)
            after = BatchCursor(partition=cursor.partition, offset=max(stream.offset, cursor.offset))
            is_kept = error is None and not stream.is_at_end and self._keep(stream, (after, compression))
            return FetchedBatches(parts=parts, cursor=after, end=self._archive.end(cursor.partition))
        finally:
            if not is_kept:
                stream.close()

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = list(self._idle.values()), OrderedDict()
        for stream in idle:
            stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stream(self, cursor: BatchCursor, compression: Compression) -> BatchStream:
        """The stream that stands at the cursor, else a new one."""
        with self._lock:
            if self._is_closed:
                raise ReplayError(
                    "the batches of a topic were asked for after they were closed: open its archive again",
                    topic=self._archive.topic,
                    partition=cursor.partition,
                    offset=cursor.offset,
                )
            found = self._idle.pop((cursor, compression), None)
        if found is not None:
            return found
        return BatchStream(
            self._archive,
            cursor.partition,
            cursor.offset,
            compression=compression,
            sizes=self._options.sizes,
            spans_gaps=self._options.spans_gaps,
        )

    def _keep(self, stream: BatchStream, key: _Key) -> bool:
        """Keep a stream for whoever goes on there; False where that can't be. The one unused for longest is closed."""
        with self._lock:
            if self._is_closed or not self._options.open_streams or key in self._idle:
                return False
            self._idle[key] = stream
            surplus = self._idle.popitem(last=False)[1] if len(self._idle) > self._options.open_streams else None
        if surplus is not None:
            surplus.close()
        return True

    def _placed(self, error: ContextError, partition: int, offset: int) -> ContextError:
        """The error, with the place that was read."""
        place = {"topic": self._archive.topic, "partition": partition, "offset": offset}
        error.context = place | error.context
        return error
