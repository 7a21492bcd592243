"""Fetches whole batches of a topic's archive by offset and bytes.

Some streams stay open after a call, so that a sequential reader finds its files open and its rows decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np

from archiver.archive.batches.borders import BatchSizes
from archiver.archive.batches.open_streams import OpenStreams
from archiver.archive.batches.stream import BatchStream, TakenBatches
from archiver.archive.topic_archive import TopicArchive
from archiver.errors import ReplayError
from archiver.wire.columns import Int64Array
from archiver.wire.encode import Compression
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCursor:
    """The next offset of a reader of a partition. Valid in any process and for any snapshot."""

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
        """Parse a cursor's text. Raises ValueError."""
        partition, _, offset = text.partition("@")
        return cls(partition=int(partition), offset=int(offset))


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedBatches:
    """Whole batches of format v2, in order over all `parts`, and the next cursor.

    `end` is the high watermark at that time. `sizes` and `last_offsets` have one element for each batch.
    """

    parts: tuple[memoryview, ...]
    cursor: BatchCursor
    end: int
    sizes: Int64Array = field(compare=False)
    last_offsets: Int64Array = field(compare=False)

    @property
    def size(self) -> int:
        """The bytes of all batches."""
        return sum(map(len, self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """How batches are made, and how many streams stay open between calls.

    With `spans_gaps` a batch ends just before the next one or the archive's end. Each open stream holds one row group,
    and about 16 MiB of rows, or one larger batch.
    """

    sizes: BatchSizes = field(default_factory=BatchSizes)
    spans_gaps: bool = False
    open_streams: int = 8

    def __post_init__(self) -> None:
        if self.open_streams < 0:
            raise ValueError(f"open_streams can't be negative, got {self.open_streams}")


def never() -> bool:
    """Never cancel."""
    return False


class BatchSource(Protocol):
    """A source of the batches of one topic. Thread-safe."""

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

        With `must_give` the first batch is returned in any case. It may begin before the cursor, but has no record from
        before it. The call returns early when `is_cancelled` returns true. An error is raised after the batches before
        it; it names topic, partition and offset.
        """

    def close(self) -> None:
        """Close all files after running calls; later calls raise ReplayError."""


class ArchivedBatches:
    """A BatchSource over a topic's archive. It sees new records after `refresh` of the archive."""

    def __init__(
        self, archive: TopicArchive, options: BatchOptions | None = None, *, streams: OpenStreams | None = None
    ) -> None:
        """`streams` may be shared by sources; without it the options limit the open streams."""
        self._archive = archive
        self._options = options or BatchOptions()
        self._streams = OpenStreams(self._options.open_streams) if streams is None else streams
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
        stream = self._streams.take(self, (cursor, compression))
        goes_on = stream is not None
        stream = stream or self._opened(cursor, compression)
        is_kept = False
        try:
            taken = stream.take(max_bytes, must_give=must_give, is_cancelled=is_cancelled)
            fetched = self._found(stream, cursor, taken)
            is_kept = taken.error is None and not stream.is_at_end
            is_kept = is_kept and self._streams.keep(self, (fetched.cursor, compression), stream, is_proven=goes_on)
            return fetched
        finally:
            if not is_kept:
                stream.close()

    def run(
        self, cursor: BatchCursor, max_bytes: int, *, compression: Compression = "original"
    ) -> Generator[FetchedBatches, None, None]:
        """Fetch repeatedly from the cursor to the end, with a separate stream.

        Close the generator to close the files. Raises as `fetch` does.
        """
        stream = self._streams.take(self, (cursor, compression)) or self._opened(cursor, compression)
        try:
            while True:
                taken = stream.take(max_bytes, must_give=True, is_cancelled=lambda: self._is_closed)
                yield (fetched := self._found(stream, cursor, taken))
                if taken.error is not None or stream.is_at_end or fetched.cursor == cursor:
                    return
                cursor = fetched.cursor
        finally:
            stream.close()

    def is_open_at(self, cursor: BatchCursor, *, compression: Compression = "original") -> bool:
        """Whether an open stream continues at the cursor, so that fetching there opens no file."""
        return self._streams.has(self, (cursor, compression))

    def close(self) -> None:
        """Close all files."""
        self._is_closed = True
        self._streams.close(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self, cursor: BatchCursor, compression: Compression) -> BatchStream:
        if self._is_closed:
            raise ReplayError(
                "the batches of a topic were asked for after they were closed: open its archive again",
                topic=self._archive.topic,
                partition=cursor.partition,
                offset=cursor.offset,
            )
        return BatchStream(
            self._archive,
            cursor.partition,
            cursor.offset,
            compression=compression,
            sizes=self._options.sizes,
            spans_gaps=self._options.spans_gaps,
        )

    def _found(self, stream: BatchStream, cursor: BatchCursor, taken: TakenBatches) -> FetchedBatches:
        if taken.error is not None and not taken.parts:
            raise self._placed(taken.error, cursor.partition, stream.offset)
        return FetchedBatches(
            parts=tuple(taken.parts),
            cursor=BatchCursor(partition=cursor.partition, offset=max(stream.offset, cursor.offset)),
            end=self._archive.end(cursor.partition),
            sizes=_joined(taken.sizes),
            last_offsets=_joined(taken.last_offsets),
        )

    def _placed(self, error: ContextError, partition: int, offset: int) -> ContextError:
        position = {"topic": self._archive.topic, "partition": partition, "offset": offset}
        error.context = position | error.context
        return error


def _joined(arrays: list[Int64Array]) -> Int64Array:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
