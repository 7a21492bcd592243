"""Find offsets that a leader can't deliver although its log continues.

No header of a corrupt batch is trusted: the log is readable again at the first valid batch that the leader
returns for its base offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import numpy as np
from kafka import errors as kafka

from archiver.errors import CorruptBatch, LeaderSilent
from archiver.kafka.fetch import FETCHES
from archiver.kafka.fetched import Fetched
from archiver.kafka.sound_batches import SoundBatch, is_readable, sound_batch, without_corrupt_head

MOST_OFFSETS: Final = 1 << 17
"""How many offsets are requested, one by one, after an unreadable one. No batch has more."""

MOST_SILENT: Final = 4_096
"""How many of these requests may get no records. Each waits `fetch.wait.max.ms`: the records may only be slow."""

_NO_REPLICA_READS: Final = (kafka.NotLeaderForPartitionError, kafka.UnsupportedVersionError)
"""The errors of services that allow no reads from replicas."""

_LENGTH_END: Final = 12
_MAGIC_AT: Final = 16
_SCANNED: Final = 1 << 20
_PROBE_BYTES: Final = 1 << 20


class LogAccess(Protocol):
    def fetch(self, offset: int, *, max_bytes: int | None = None, committed: bool = True) -> Fetched: ...

    def fetch_from(self, replica: int, offset: int, *, max_bytes: int) -> bytes:
        """Raises the protocol library's errors."""

    def other_replicas(self) -> Sequence[int]: ...

    def local_start(self) -> int | None: ...

    def reconnect(self) -> None: ...


def unreadable(log: LogAccess, offset: int) -> str | None:
    """Return why the offset can't be read; None if one of `FETCHES` fetches gives a valid batch.

    The last fetch is on a new connection. Batches of open transactions count, too.
    """
    reason = None
    for number in range(1, FETCHES + 1):
        if number == FETCHES:
            log.reconnect()
        try:
            fetched = log.fetch(offset, max_bytes=_PROBE_BYTES, committed=False)
        except CorruptBatch as error:
            reason = error.message
            continue
        if is_readable(without_corrupt_head(fetched.data, offset), offset):
            return None
        reason = "the batch is corrupt" if fetched.data else "the leader answers with no records"
    return reason


def next_readable(log: LogAccess, offset: int, **where: object) -> int:
    """Return the next readable offset after an `unreadable` one.

    Raises CorruptBatch or LeaderSilent, and nothing may be recorded as lost, unless all replicas answer and lack
    the records, and a valid batch follows.
    """
    _refuse_if_elsewhere(log, offset, where)
    seen_end, silent, doubtful = offset + 1, 0, set[int]()
    for probe in range(offset, offset + MOST_OFFSETS):
        try:
            fetched = log.fetch(probe, max_bytes=None if probe == offset else _PROBE_BYTES)
        except CorruptBatch:
            continue
        if _has(fetched.data, offset):
            raise LeaderSilent(
                "The leader gives the records again. Nothing is recorded as lost: run again", **where, offset=offset
            )
        seen_end = fetched.last_stable_offset
        silent += not fetched.data
        if probe == offset and not fetched.data and offset < (log.local_start() or 0):
            raise LeaderSilent(
                "The offset is in remote storage, which gives nothing now. Nothing is recorded as lost: repair the"
                " remote storage of the brokers",
                **where,
                offset=offset,
            )
        if probe >= seen_end or silent > MOST_SILENT:
            break
        batches = _later_batches(fetched.data, after=offset, before=seen_end)
        given = next((batch for batch in batches if _is_given(log, batch, fetched.data)), None)
        if given is None:
            doubtful |= {batch.base_offset for batch in batches}
            continue
        doubtful |= _jumped_over(fetched.data, batches, given)
        if doubtful:
            raise CorruptBatch(
                "A batch after the unreadable offset has a right checksum, and the leader can't find it by its offset."
                " Nothing is recorded as lost: keep a copy of the leader's log folder, and elect another replica",
                **where,
                offset=offset,
                not_found=min(doubtful),
            )
        return given.base_offset
    raise CorruptBatch(
        "No batch with a right checksum follows the unreadable offset. Nothing is recorded as lost: the broker's disk"
        " or storage needs a look, or records have to follow first",
        **where,
        offset=offset,
        last_stable_offset=seen_end,
    )


def _refuse_if_elsewhere(log: LogAccess, offset: int, where: dict[str, object]) -> None:
    for replica in log.other_replicas():
        try:
            data = log.fetch_from(replica, offset, max_bytes=1)
        except kafka.KafkaError as error:
            if isinstance(error, _NO_REPLICA_READS):
                continue
            raise LeaderSilent(
                f"Another replica may have the unreadable records, and doesn't give them: {error}. Start that broker,"
                " let it catch up, and allow this principal to read from it; or reassign the partition if the broker is"
                " gone for good",
                **where,
                offset=offset,
                replica=replica,
            ) from error
        if is_readable(data, offset):
            raise CorruptBatch(
                "Another replica has the records that the leader can't give. Elect that replica"
                " (kafka-reassign-partitions.sh puts it first, kafka-leader-election.sh elects it), and run again",
                **where,
                offset=offset,
                replica=replica,
            )


def _has(data: bytes, offset: int) -> bool:
    first = sound_batch(memoryview(without_corrupt_head(data, offset)))
    return first is not None and first.base_offset <= offset <= first.last_offset


def _is_given(log: LogAccess, batch: SoundBatch, data: bytes) -> bool:
    """Records may contain bytes that look like a batch: fetch it by its offset."""
    try:
        given = without_corrupt_head(log.fetch(batch.base_offset).data, batch.base_offset)
    except CorruptBatch:
        return False
    return given[: batch.size] == data[batch.position : batch.position + batch.size]


def _later_batches(data: bytes, *, after: int, before: int) -> list[SoundBatch]:
    view = memoryview(data)
    batches = [
        batch
        for position in _candidates(np.frombuffer(data, np.uint8), after, before)
        if (batch := sound_batch(view, position)) is not None
    ]
    return sorted(batches, key=lambda batch: batch.base_offset)


def _jumped_over(data: bytes, batches: Sequence[SoundBatch], given: SoundBatch) -> set[int]:
    """Base offsets before `given` of maybe real batches that the leader doesn't find.

    If the first batch's length leads to `given`, the rest lie in its records, except if they lead there too: then
    the length is wrong.
    """
    earlier = [batch for batch in batches if batch.base_offset < given.base_offset]
    length = int.from_bytes(data[8:_LENGTH_END], "big", signed=True)
    if length + _LENGTH_END != given.position:
        return {batch.base_offset for batch in earlier}
    starts, real = {given.position}, set[int]()
    for batch in sorted(earlier, key=lambda batch: -batch.position):
        if batch.position + batch.size in starts:
            starts.add(batch.position)
            real.add(batch.base_offset)
    return real


def _candidates(octets: np.ndarray[tuple[int], np.dtype[np.uint8]], after: int, before: int) -> Iterator[int]:
    end = len(octets) - _MAGIC_AT
    for start in range(0, max(0, end), _SCANNED):
        part = octets[start : start + _SCANNED + _MAGIC_AT]
        places = np.flatnonzero(part[_MAGIC_AT:] <= 2)  # noqa: PLR2004 - the format
        bases = np.zeros(len(places), np.uint64)
        for byte in range(8):
            bases = (bases << np.uint64(8)) | part[places + byte]
        fitting = places[(bases > np.uint64(after)) & (bases < np.uint64(before))]
        yield from (start + int(index) for index in fitting)
