"""Fetches whole batches by offset and bytes."""

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
    """A reader's next offset in a partition. Valid in any process and snapshot."""

    partition: int
    offset: int

    def __post_init__(self) -> None:
        if self.partition < 0 or not 0 <= self.offset < 1 << 63:
            raise ValueError(f"no partition has such an offset: {self.text}")

    @property
    def text(self) -> str:
        return f"{self.partition}@{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `3@1200`. Raises ValueError."""
        partition, _, offset = text.partition("@")
        return cls(partition=int(partition), offset=int(offset))


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedBatches:
    """Whole batches of format v2, in order over `parts`.

    `end` is the high watermark. `sizes` and `last_offsets` are per batch.
    """

    parts: tuple[memoryview, ...]
    cursor: BatchCursor
    end: int
    sizes: Int64Array = field(compare=False)
    last_offsets: Int64Array = field(compare=False)

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """An open stream holds one row group and about 16 MiB of rows, or one larger batch.

    With `spans_gaps` a batch extends to the next one.
    """

    sizes: BatchSizes = field(default_factory=BatchSizes)
    spans_gaps: bool = False
    open_streams: int = 8

    def __post_init__(self) -> None:
        if self.open_streams < 0:
            raise ValueError(f"open_streams can't be negative, got {self.open_streams}")


def never() -> bool:
    return False


class BatchSource(Protocol):
    """The batches of one topic. Thread-safe."""

    def fetch(
        self,
        cursor: BatchCursor,
        max_bytes: int,
        *,
        compression: Compression = "original",
        must_give: bool = True,
        is_cancelled: Callable[[], bool] = never,
    ) -> FetchedBatches:
        """Return batches from the cursor on that fit into `max_bytes`; none at the end.

        With `must_give` at least one. The first may begin before the cursor. Errors come after earlier batches and name
        topic, partition and offset.
        """

    def close(self) -> None:
        """Close files after running calls. Later calls raise ReplayError."""


class ArchivedBatches:
    """A BatchSource over an archive, whose `refresh` shows new records."""

    def __init__(
        self, archive: TopicArchive, options: BatchOptions | None = None, *, streams: OpenStreams | None = None
    ) -> None:
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
        """Fetch to the end with a separate stream. Raises as `fetch`."""
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
        """True if fetching at the cursor opens no file."""
        return self._streams.has(self, (cursor, compression))

    def close(self) -> None:
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
