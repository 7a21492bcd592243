"""Detect a recreated or diverged log when leader epochs are inconclusive (docs/adr/0025-epochs-and-records.md).

Missing or different records are a divergence, otherwise epochs are corrected. Without epochs of brokers, the
newest archived records are compared each time (docs/adr/0078-brokers-without-epochs.md), and so they are without
topic ids (docs/adr/0108-topics-without-ids.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, Protocol

from archiver.errors import SourceError, StorageDenied, StorageUnavailable
from archiver.kafka.broker import At, EpochEnd
from archiver.topics.seen_partition import SeenPartition
from catalog.errors import CatalogDenied, CatalogUnreachable
from catalog.model import PartitionOffset

if TYPE_CHECKING:
    import pyarrow as pa

    from archiver.wire.columns import DecodedBatches

NEWEST_BYTES: Final = 1 << 20
"""The most archived bytes of a partition that a look compares if its leader proves nothing by epochs."""

UNPROVEN_EPOCHS: Final = (
    "the brokers' answers about leader epochs of topic %s prove nothing, or there are none: each run compares the"
    " newest archived records"
    " of each partition (at most 1 MiB) with the log. A log that was cut back and written again is found there only"
)
"""What to say of a topic whose leaders prove nothing by epochs."""

_FIRST_STEP: Final = 1024
_FIRST_NEWEST: Final = 64
_ANY_EPOCH: Final = 2**31 - 1
_MOST_OFFSETS: Final = 1 << 20
_LOG_FACTOR: Final = 4
"""The most bytes of the log that are compared, as a multiple of the archive's."""
_CANT_READ: Final = (CatalogUnreachable, CatalogDenied, StorageUnavailable, StorageDenied)

_LOG: Final = logging.getLogger(__name__)


class Epochs(Protocol):
    """See `BrokerClient`."""

    def end_of_epoch(self, topic: str, epochs: Mapping[int, int]) -> Mapping[int, EpochEnd]: ...

    def epoch_before(self, topic: str, partition: int, offset: int, *, since: int) -> EpochEnd | None: ...

    def current_epoch(self, topic: str, partition: int) -> int:
        """-1 if unknown."""

    def list_offsets(self, topic: str, partitions: Iterable[int], at: At) -> Mapping[int, int]: ...

    def is_compacted(self, topic: str) -> bool | None:
        """None if unknown."""


class LogReader(Protocol):
    """See `PartitionFetcher.batches`."""

    def __call__(self, partition: int, start_offset: int, end_offset: int, /) -> Iterable[DecodedBatches]: ...


class Archived(Protocol):
    def read(self, partition: int, start_offset: int, end_offset: int) -> pa.RecordBatch: ...


class Continuity:
    """`archived` is called only to compare. Before `starts` nothing is archived.

    `proven` remembers, by partition, an offset and its epoch: a log that ends this epoch at or after the offset
    still is the archived one.
    """

    def __init__(
        self,
        topic: str,
        *,
        epochs: Epochs,
        log: LogReader,
        archived: Callable[[], Archived],
        starts: Callable[[], Mapping[int, int]],
        proven: MutableMapping[int, PartitionOffset],
        newest_bytes: int = NEWEST_BYTES,
    ) -> None:
        self._topic = topic
        self._epochs = epochs
        self._log = log
        self._open = archived
        self._starts = starts
        self._proven = proven
        self._newest_bytes = newest_bytes
        self._is_readable = True

    def judged(self, seen: SeenPartition, answer: EpochEnd | None, *, has_id: bool = True) -> SeenPartition:
        """`answer` is the leader's about `seen.known.leader_epoch`.

        Without a topic id, a topic that was created again may have the same epochs: then new records are archived only
        after the newest archived ones were compared. If the archive can't be read now, the epochs decide. Other errors
        of log or archive are raised, and nothing is proven.
        """
        judged = self._judged_by_epochs(seen, answer)
        if has_id or seen.known is None or seen.known.leader_epoch < 0 or judged.epoch_end is not None:
            return judged
        if not judged.proves_epochs or seen.last_stable <= seen.next_offset:
            return judged
        if not self._is_readable:
            return judged
        try:
            return replace(self._compare_newest(judged, seen.known, agrees=True), proves_epochs=True)
        except _CANT_READ as error:
            self._is_readable = False
            _LOG.warning(
                "the brokers give topic %s no id, and its archived records can't be compared with its log now (%s):"
                " new records are archived because the leader epochs agree. The next run that can read the archive"
                " compares",
                self._topic,
                error,
            )
            return judged

    def _judged_by_epochs(self, seen: SeenPartition, answer: EpochEnd | None) -> SeenPartition:
        position = seen.known
        if position is None:
            return seen
        if answer is None or position.leader_epoch < 0:
            return (
                self._compare_newest(seen, position)
                if position.leader_epoch >= 0
                else self._without_epoch(seen, position)
            )
        if _agrees(answer, position):
            return replace(seen, last_epoch=position.leader_epoch)
        proven = self._proven.get(seen.partition)
        if proven is not None and proven.next_offset == position.next_offset and self._has(seen.partition, proven):
            return replace(seen, last_epoch=proven.leader_epoch)
        if not self._is_consistent(seen.partition):
            return self._compare_newest(seen, position)
        return self._compared(seen, position, answer)

    def _without_epoch(self, seen: SeenPartition, known: PartitionOffset) -> SeenPartition:
        """Batches of brokers without epochs, in an old format, or rebuilt."""
        if known.next_offset <= self._starts().get(seen.partition, 0):
            return seen
        judged = self._compare_newest(seen, known)
        return replace(judged, proves_epochs=self._epochs.current_epoch(self._topic, seen.partition) >= 0)

    def _is_consistent(self, partition: int) -> bool:
        """True if the leader moves during the check."""
        epoch = self._epochs.current_epoch(self._topic, partition)
        if epoch >= 0:
            end = self._epochs.list_offsets(self._topic, [partition], "latest_stable")[partition]
        else:  # the brokers don't say in which epoch they lead: take the newest committed batch
            epoch, end = self._newest_epoch(partition)
        if epoch < 0:
            return True
        answer = self._epochs.end_of_epoch(self._topic, {partition: epoch}).get(partition)
        contradicts = answer is None or answer.end_offset < end
        return not contradicts or self._epochs.current_epoch(self._topic, partition) not in {-1, epoch}

    def _newest_epoch(self, partition: int) -> tuple[int, int]:
        """-1 if none, with an offset at or before the epoch's end."""
        end = self._epochs.list_offsets(self._topic, [partition], "latest_stable")[partition]
        start = self._epochs.list_offsets(self._topic, [partition], "earliest")[partition]
        newest = -1, 0
        for piece in self._log(partition, max(start, end - 1), end):
            if len(piece.epochs.epoch):
                newest = int(piece.epochs.epoch[-1]), int(piece.epochs.base_offset[-1]) + 1
        return newest

    def _compare_newest(self, seen: SeenPartition, known: PartitionOffset, *, agrees: bool = False) -> SeenPartition:
        """If the answers about epochs agree, only a log without any of the archived records is another one."""
        from archiver.topics.divergence import differences

        seen = replace(seen, proves_epochs=False)
        partition, end = seen.partition, known.next_offset
        if seen.gap is not None or seen.last_stable < end:
            return seen  # the continuity check names these
        least = max(self._starts().get(partition, 0), seen.log_start, end - _MOST_OFFSETS if agrees else 0)
        start = self._newest_start(partition, least, end)
        log = self._log(partition, start, end)
        if agrees:
            log, end = self._first_of(log, end)
        read = partial(self._archived.read, partition)
        result = differences(log, read, partition=partition, start_offset=start, end_offset=end)
        # Erased, retired and lost records may be in the log. Compaction takes records away, and brings no new ones.
        is_other_log = not agrees or (not result.shared and end == known.next_offset)
        is_gone = result.only_archived and is_other_log and self._epochs.is_compacted(self._topic) is False
        if not (result.other or is_gone):
            return seen
        return replace(seen, epoch_end=result.first, differs=result.text)

    def _first_of(self, log: Iterable[DecodedBatches], end: int) -> tuple[list[DecodedBatches], int]:
        """With the end of the returned pieces, if more follow."""
        pieces: list[DecodedBatches] = []
        size = 0
        for piece in log:
            pieces.append(piece)
            size += max(piece.consumed, piece.records.nbytes)
            if size > self._newest_bytes * _LOG_FACTOR:
                return pieces, min(end, piece.next_offset)
        return pieces, end

    def _newest_start(self, partition: int, least: int, end: int) -> int:
        """The offset of an archived record, `end` if there is none."""
        from archiver.topics.divergence import AT_ONCE

        step, at, size, start = _FIRST_NEWEST, end, 0, end
        while at > least:
            until, at = at, max(least, at - step)
            rows = self._archived.read(partition, at, until)
            if rows.num_rows and size + rows.nbytes > self._newest_bytes:
                fitting = rows.num_rows * (self._newest_bytes - size) // rows.nbytes
                if not fitting and size:
                    return start
                return int(rows.column("offset")[-max(1, fitting)].as_py())
            if rows.num_rows:
                start = int(rows.column("offset")[0].as_py())
            size += rows.nbytes
            step = min(step * 4, AT_ONCE)
        return start

    def _compared(self, seen: SeenPartition, known: PartitionOffset, answer: EpochEnd) -> SeenPartition:
        from archiver.topics.divergence import differences

        partition, end = seen.partition, known.next_offset
        before = self._epochs.epoch_before(self._topic, partition, end, since=answer.leader_epoch)
        start = max(self._same_until(partition, known, answer), self._starts().get(partition, 0))
        log: Iterable[DecodedBatches] = ()
        if seen.gap is None:  # else the log has none of these offsets any more
            start = max(start, seen.log_start)
            log = self._log(partition, start, min(end, seen.last_stable))
        read = partial(self._archived.read, partition)
        difference = differences(log, read, partition=partition, start_offset=start, end_offset=end)
        if difference.first is not None:
            return replace(seen, epoch_end=difference.first, differs=difference.text)
        if before is None:
            return seen
        self._proven[partition] = PartitionOffset(next_offset=end, leader_epoch=before.leader_epoch)
        return replace(seen, last_epoch=before.leader_epoch)

    def _same_until(self, partition: int, known: PartitionOffset, answer: EpochEnd) -> int:
        start, end = answer.end_offset, known.next_offset
        if answer.leader_epoch < known.leader_epoch:
            same = self._last(partition, 0, end, epoch=answer.leader_epoch)
            start = min(start, same.next_offset if same else 0)
        last = self._last(partition, start, end)
        return last.next_offset if last is not None and self._has(partition, last) else start

    def _has(self, partition: int, place: PartitionOffset) -> bool:
        if place.leader_epoch < 0:
            return False
        answer = self._epochs.end_of_epoch(self._topic, {partition: place.leader_epoch}).get(partition)
        return answer is not None and _agrees(answer, place)

    def _last(self, partition: int, start: int, end: int, *, epoch: int = _ANY_EPOCH) -> PartitionOffset | None:
        import pyarrow.compute as pc

        from archiver.topics.divergence import AT_ONCE

        step, at = _FIRST_STEP, end
        while at > start:
            until, at = at, max(start, at - step)
            step = min(step * 8, AT_ONCE)
            records = self._archived.read(partition, at, until)
            records = records.filter(pc.less_equal(records.column("leader_epoch"), epoch))
            if records.num_rows:
                offset, of = (records.column(name)[-1].as_py() for name in ("offset", "leader_epoch"))
                return PartitionOffset(next_offset=offset + 1, leader_epoch=of)
        return None

    @cached_property
    def _archived(self) -> Archived:
        return self._open()


def same_log(epochs: Epochs, topic: str, partition: int, place: PartitionOffset, later: int) -> bool:
    """Whether the leader has the record before `place` in its epoch, and knows the `later` epoch.

    Stale leaders don't know later epochs.
    """
    try:
        ends = [epochs.end_of_epoch(topic, {partition: epoch}).get(partition) for epoch in (place.leader_epoch, later)]
    except SourceError:
        return False
    before, after = ends
    return before is not None and _agrees(before, place) and after is not None and after.leader_epoch >= later


def _agrees(answer: EpochEnd, place: PartitionOffset) -> bool:
    return answer.leader_epoch >= place.leader_epoch and answer.end_offset >= place.next_offset
