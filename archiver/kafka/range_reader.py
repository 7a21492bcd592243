"""Read a range of offsets, and fetch the next piece ahead.

A range ends at its end offset, or before a later batch, because compaction may remove the rest. Empty fetches
prove nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Final, Protocol

import numpy as np

from archiver.errors import ArchiverError, CorruptBatch, DataLoss, LeaderSilent, LogTruncated
from archiver.kafka.fetched import Fetched
from archiver.kafka.sound_batches import without_corrupt_head
from archiver.wire import DecodedBatches, DecodeLimits, decode_batches
from archiver.wire.find_batches import FoundBatches, find_batches
from archiver.wire.inflate import Inflater

_EMPTY_PAUSE: Final = 0.05
_FAR: Final = (1 << 63) - 1


class Source(Protocol):
    """`peek` returns only the first batch, of an open transaction too."""

    def __call__(self, offset: int, *, peek: bool, last_epoch: int) -> Fetched:
        """Return nothing at the end of the log. `last_epoch` is of the record before the offset, -1 if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A fetch with a whole batch, or the proof that none is left.

    `last`: nothing of the range follows.
    """

    fetched: Fetched
    start_offset: int
    next_offset: int
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeToRead:
    """See `PartitionFetcher.batches`."""

    start_offset: int
    end_offset: int
    cut_head: bool = False
    limits: DecodeLimits = field(default_factory=DecodeLimits)
    last_epoch: int = -1


def read_range(
    source: Source, span: RangeToRead, *, stall_seconds: float, where: Mapping[str, Any]
) -> Iterator[DecodedBatches]:
    """Raises the source's errors and `CorruptBatch`.

    Also `DataLoss` if the log ends before the range, `LogTruncated` if it diverged, and `LeaderSilent` after
    `stall_seconds` without data.
    """
    if span.start_offset >= span.end_offset:
        yield decode_batches(b"", start_offset=span.start_offset, end_offset=span.end_offset)
        return
    fetching = _Fetching(source, span, stall_seconds, where)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="fetch") as pool:
        try:
            piece = fetching.piece(span.start_offset)  # most ranges have no other
            while True:
                pending = None if piece.last else pool.submit(fetching.piece, piece.next_offset)
                yield from _decode(piece, span, where)
                if pending is None:
                    return
                piece = pending.result()
        finally:
            fetching.stop.set()


def _decode(piece: _Piece, span: RangeToRead, where: Mapping[str, Any]) -> Iterator[DecodedBatches]:
    data, aborted, at = memoryview(piece.fetched.data), piece.fetched.aborted, piece.start_offset
    while True:
        try:
            decoded = decode_batches(
                data,
                aborted=aborted,
                start_offset=at,
                end_offset=span.end_offset,
                cut_head=span.cut_head,
                limits=span.limits,
                keep_sound=True,
            )
        except CorruptBatch as error:
            raise CorruptBatch(error.message, **where, **error.context) from error
        data, aborted, at = data[decoded.consumed :], decoded.open_transactions, decoded.next_offset
        if decoded.complete or at >= piece.next_offset:
            yield decoded if not piece.last else replace(decoded, next_offset=max(at, span.end_offset), complete=True)
            return
        yield decoded
        if decoded.error is not None:
            raise CorruptBatch(decoded.error.message, **where, **decoded.error.context) from decoded.error


class _Fetching:
    def __init__(self, source: Source, span: RangeToRead, stall_seconds: float, where: Mapping[str, Any]) -> None:
        self._source = source
        self._inflater = Inflater(limit=span.limits.batch)
        self._end_offset = span.end_offset
        self._stall_seconds = stall_seconds
        self._where = where
        self._last_epoch = span.last_epoch
        self.stop = threading.Event()

    def piece(self, offset: int) -> _Piece:
        deadline = monotonic() + self._stall_seconds
        while not self.stop.is_set():
            fetched = self._ask(offset, peek=False)
            if fetched.data:
                return self._measured(replace(fetched, data=without_corrupt_head(fetched.data, offset)), offset)
            if fetched.last_stable_offset >= self._end_offset and self._range_is_over(offset):
                return _Piece(fetched=fetched, start_offset=offset, next_offset=offset, last=True)
            if monotonic() > deadline:
                raise self._silence(fetched, offset)
            self.stop.wait(_EMPTY_PAUSE)
        raise CancelledError

    def _ask(self, offset: int, *, peek: bool) -> Fetched:
        fetched = self._source(offset, peek=peek, last_epoch=self._last_epoch)
        if fetched.epoch_end is not None:
            raise LogTruncated(
                "The log was cut back while it was read (an unclean leader election). The next look compares what it "
                "has now with what is archived",
                **self._where,
                leader_epoch=self._last_epoch,
                diverging=f"[{fetched.epoch_end}, {offset})",
            )
        return fetched

    def _measured(self, fetched: Fetched, offset: int) -> _Piece:
        batches = self._find(fetched.data)
        if batches.error is not None:  # decoding raises it, after any error that comes before it
            return _Piece(fetched=fetched, start_offset=offset, next_offset=_FAR, last=True)
        if batches.next_range_seen:
            return _Piece(fetched=fetched, start_offset=offset, next_offset=self._end_offset, last=True)
        if not len(batches.headers):
            raise CorruptBatch(
                "A batch says it is longer than the broker has it",
                **self._where,
                offset=offset,
                bytes=len(fetched.data),
            )
        self._last_epoch = max(self._last_epoch, int(batches.headers["leader_epoch"].max()))
        next_offset = int(batches.headers["last_offset"][-1]) + 1
        if next_offset <= offset:
            raise CorruptBatch("The broker answers with batches before the offset", **self._where, offset=offset)
        return _Piece(
            fetched=fetched, start_offset=offset, next_offset=next_offset, last=next_offset >= self._end_offset
        )

    def _range_is_over(self, offset: int) -> bool:
        seen = self._ask(offset, peek=True)
        batches = self._find(seen.data)
        return batches.next_range_seen and not len(batches.headers)

    def _find(self, data: bytes) -> FoundBatches:
        return find_batches(np.frombuffer(data, dtype=np.uint8), self._end_offset, self._inflater)

    def _silence(self, fetched: Fetched, offset: int) -> ArchiverError:
        if fetched.high_watermark < self._end_offset:
            return DataLoss(
                "The log ends before the range does: it was cut back while it was archived",
                **self._where,
                log_end=fetched.high_watermark,
                lost=f"[{max(offset, fetched.high_watermark)}, {self._end_offset})",
            )
        return LeaderSilent(
            f"The leader gave nothing for {self._stall_seconds:.0f} s, though its log goes on",
            **self._where,
            offset=offset,
            end_offset=self._end_offset,
            last_stable_offset=fetched.last_stable_offset,
        )
