"""The write-ahead log of a topic: rows are durable before they are acknowledged.

One thread appends; any thread reads and releases.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, TypeAlias

from archiver.errors import BadBatch, BatchTooOld, ClientFenced, ClientTaken, IntakeEnded, IntakeError, IntakeFull
from archiver.fault_points import IntakePoint, pass_point
from archiver.intake.batches import BATCHES, Acknowledgement, IntakeBatch, LoggedBatch
from archiver.intake.clients import ClientPosition
from archiver.intake.disk import Disk, LogFile, disk_error
from archiver.intake.frames import OVERHEAD, frame, read_frame, read_frames
from archiver.intake.segments import (
    SEGMENT,
    UNFINISHED,
    LogId,
    LogSurvey,
    Segment,
    apply_entry,
    entries,
    head_of,
    name_segment,
    segment_name,
    unnamed_segment,
)
from archiver.intake.state import IntakeState

Outcome: TypeAlias = Acknowledgement | IntakeError
RETRY_SECONDS: Final = 1.0
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR)
_HEAD_BYTES: Final = 1024
_PART_BYTES: Final = 64
_TEXT_FACTOR: Final = 12
"""The most bytes of a character in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """A larger batch than `segment_bytes` has a larger segment."""

    wal_bytes: int
    segment_bytes: int


@dataclass(frozen=True, slots=True)
class LogUse:
    """`appended` are bytes since the start, `begun` counts segments."""

    appended: int
    disk: int
    begun: int = 0


class TopicLog:
    """Open with `begin`. After a failed write or sync, it refuses batches."""

    def __init__(
        self, disk: Disk, *, topic: str, log_id: LogId, epoch: int, limits: LogLimits, clock: Callable[[], int]
    ) -> None:
        self._disk = disk
        self._topic = topic
        self._log_id = log_id
        self._epoch = epoch
        self._limits = limits
        self._clock = clock
        self._lock = Lock()
        self._segments: list[Segment] = []
        self._durable = 0
        self._durable_offsets: Mapping[int, int] = {}
        self._appended = 0
        self._begun = 0
        self._file: LogFile | None = None
        self._ended: IntakeEnded | None = None
        self._has_failed = False
        self._lacks: str | None = None
        self._state: IntakeState

    def begin(self, survey: LogSurvey, state: IntakeState | None = None) -> None:
        """Take over the surveyed log, or begin it with `state`. Raises IntakeError.

        The last segment is written again: its end may be readable but not durable.
        """
        try:
            for name in self._disk.names():
                if name.endswith(UNFINISHED) or (name.endswith(SEGMENT) and not survey.segments):
                    self._disk.remove(name)
            self._state = state if state is not None and not survey.segments else survey.state
            if survey.segments:
                self._copy_last(survey)
            else:
                self._start_segment(self._unnamed_segment(0))
                LogId(wal_id=self._log_id.wal_id, has_begun=True).write(self._disk)
        except OSError as error:
            raise disk_error(error, topic=self._topic) from error
        self._durable = self._state.sequence
        self._durable_offsets = dict(self._state.next_offsets)
        self._appended = sum(segment.size for segment in self._segments)

    @property
    def next_offsets(self) -> Mapping[int, int]:
        return self._durable_offsets

    @property
    def ended(self) -> IntakeEnded | None:
        return self._ended

    @property
    def has_failed(self) -> bool:
        return self._has_failed

    @property
    def use(self) -> LogUse:
        with self._lock:
            return LogUse(self._appended, sum(segment.room for segment in self._segments), self._begun)

    def position(self, client: str, principal: str = "") -> ClientPosition:
        """For the appending thread: between its calls, all batches are durable. Raises ClientTaken."""
        self._check()
        self._state.clients.check_owner(client, principal)
        return self._state.clients.position(client)

    def append(self, batches: Sequence[IntakeBatch]) -> list[Outcome]:
        """Append batches as one group: all are durable when this returns.

        An outcome that is an error concerns its batch alone. Raises IntakeEnded if the disk failed: any of the
        batches may be durable.
        """
        self._check()
        needed = sum(map(_most_bytes, batches))
        try:
            has_room = self._make_room(needed)
            outcomes, frames = self._take_in(batches, has_room=has_room)
            self._write(frames)
        except BaseException as error:
            raise self._fail(error) from error
        return outcomes

    def fence(self, client: str, principal: str = "") -> ClientPosition | IntakeError:
        """Raise a client's incarnation: older ones are refused. Raises as `append`."""
        self._check()
        try:
            self._state.clients.check_owner(client, principal)
            self._state.clients.check_room(client)
        except (BadBatch, ClientTaken) as error:
            return error
        try:
            if not self._make_room(_HEAD_BYTES + _TEXT_FACTOR * len(client + principal)):
                return self._full()
            incarnation = self._state.clients.position(client).incarnation + 1
            self._write([self._fence(client, incarnation, principal)])
        except BaseException as error:
            raise self._fail(error) from error
        return self._state.clients.position(client)

    def roll(self) -> bool:
        """False if there is no room. Raises as `append`."""
        self._check()
        with self._lock:
            has_entries = self._segments[-1].first < self._state.sequence
        if not has_entries:
            return True
        try:
            return self._begin_segment(0)
        except BaseException as error:
            raise self._fail(error) from error

    def durable_state(self) -> IntakeState:
        """Raises IntakeError."""
        with self._lock:
            segment, size, durable = self._segments[-1], self._segments[-1].size, self._durable
        data = self._read(segment.name, size)
        header = read_frame(data, 0)
        assert header is not None
        state = IntakeState.from_json(header.head["state"], most_clients=0)
        for entry in read_frames(data, header.end):
            if entry.head["sequence"] < durable:
                apply_entry(state, entry)
        return state

    def batches(
        self, ends: Mapping[int, int], *, before: int | None = None
    ) -> Iterator[tuple[LoggedBatch, memoryview]]:
        """Yield durable batches with rows after `ends`, up to entry `before`. Raises IntakeError."""
        with self._lock:
            durable = self._durable if before is None else min(before, self._durable)
            segments = [(segment.name, segment.size) for segment in self._segments if not segment.is_covered(ends)]
        for name, size in segments:
            for entry in entries(self._read(name, size)):
                if entry.head["kind"] in BATCHES and entry.head["sequence"] < durable:
                    batch = LoggedBatch.from_json(entry.head)
                    if any(part.end_offset > ends.get(part.partition, 0) for part in batch.parts):
                        yield batch, entry.body

    def release(self, ends: Mapping[int, int]) -> None:
        """Remove segments whose rows are in the table. Raises IntakeError."""
        while True:
            with self._lock:
                if len(self._segments) < 2 or not self._segments[0].is_covered(ends):  # noqa: PLR2004 - the last is open
                    return
                segment = self._segments[0]
            try:
                self._disk.remove(segment.name)
                self._disk.sync_folder()  # one by one: no later segment may be gone while an earlier one is not
            except OSError as error:
                raise disk_error(error, topic=self._topic, segment=segment.name) from error
            with self._lock:
                self._segments.remove(segment)

    def state_json(self) -> dict[str, Any]:
        return self._state.to_json()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self.end(IntakeEnded("the server stops taking in rows", topic=self._topic))

    def empty(self, ends: Mapping[int, int]) -> None:
        """After `close`: leave one empty segment, if the table has all up to `ends`. Raises IntakeError."""
        self.release(ends)
        try:
            if not self._begin_segment(0):
                raise self._full()
            assert self._file is not None
            self._file.close()
            self._file = None
        except OSError as error:
            raise disk_error(error, topic=self._topic) from error
        self.release(ends)

    def end(self, reason: IntakeEnded) -> None:
        """Any thread may call it: the file stays open until `close`."""
        self._ended = self._ended or reason

    def _read(self, name: str, size: int) -> bytes:
        try:
            return self._disk.read(name, size)
        except OSError as error:
            raise disk_error(error, topic=self._topic, segment=name) from error

    def _check(self) -> None:
        if self._ended is not None:
            raise self._ended

    def _take_in(self, batches: Sequence[IntakeBatch], *, has_room: bool) -> tuple[list[Outcome], list[bytes]]:
        outcomes: list[Outcome] = []
        frames: list[bytes] = []
        clients = self._state.clients
        for batch in batches:
            try:
                answer = clients.judge(batch)
            except IntakeError as error:
                is_final = isinstance(error, (BadBatch, BatchTooOld, ClientFenced, ClientTaken))
                outcomes.append(error if has_room or is_final else self._full())
                continue
            if answer is None and not has_room:
                outcomes.append(self._full())
                continue
            position = clients.position(batch.client)
            if has_room and position.next_batch_id > 0 and batch.incarnation > position.incarnation:
                frames.append(self._fence(batch.client, batch.incarnation, batch.principal))
            if answer is None:
                frames.append(self._batch(batch))
                answer = clients.judge(batch)
                assert answer is not None
            outcomes.append(answer)
        return outcomes, frames

    def _batch(self, batch: IntakeBatch) -> bytes:
        logged = self._state.place(batch, now_ms=self._clock())
        entry = frame({**self._entry(logged.kind), **logged.to_json()}, batch.body)
        self._state.add(logged)
        with self._lock:
            self._segments[-1].add(logged)
        return entry

    def _fence(self, client: str, incarnation: int, principal: str) -> bytes:
        owner = {"principal": principal} if principal else {}
        entry = frame({**self._entry("fence"), "client": client, "incarnation": incarnation, **owner})
        self._state.fence(client, incarnation, principal)
        return entry

    def _entry(self, kind: str) -> dict[str, Any]:
        return {"log": self._log_id.wal_id, "kind": kind, "sequence": self._state.sequence, "durable": self._durable}

    def _write(self, frames: Sequence[bytes]) -> None:
        if not frames:
            return
        assert self._file is not None
        content = b"".join(frames) if len(frames) > 1 else frames[0]
        self._file.write(content)
        pass_point(IntakePoint.WAL_APPENDED)
        self._file.sync()
        pass_point(IntakePoint.WAL_SYNCED)
        with self._lock:
            self._segments[-1].size += len(content)
            self._durable = self._state.sequence
            self._durable_offsets = dict(self._state.next_offsets)
            self._appended += len(content)

    def _make_room(self, needed: int) -> bool:
        """Raises OSError if the disk failed."""
        with self._lock:
            segment = self._segments[-1]
        if segment.size + needed <= segment.room:
            return True
        return self._begin_segment(needed)

    def _begin_segment(self, needed: int) -> bool:
        with self._lock:
            used = sum(segment.room for segment in self._segments)
        self._lacks = None
        try:
            unnamed = self._unnamed_segment(needed, most=self._limits.wal_bytes - used)
        except OSError as error:
            if error.errno in _FULL:  # the log is as before: errors after this point end it
                self._lacks = error.strerror
                return False
            raise
        if unnamed is None:
            return False
        self._start_segment(unnamed)
        return True

    def _unnamed_segment(self, needed: int, *, most: int | None = None) -> tuple[Segment, LogFile] | None:
        """None if it would have more than `most` bytes.

        It has room for another head, so that a large state is not written for each batch.
        """
        name = segment_name(self._state.sequence, self._epoch)
        head = self._head(self._state.to_json())
        room = max(self._limits.segment_bytes, len(head) + max(needed, len(head)))
        if most is not None and room > most:
            return None
        file = unnamed_segment(self._disk, name, head, reserve=room)
        return Segment(name=name, first=self._state.sequence, size=len(head), room=room), file

    def _start_segment(self, unnamed: tuple[Segment, LogFile] | None) -> None:
        assert unnamed is not None
        segment, file = unnamed
        if self._file is not None:
            self._file.close()
        self._file = file
        name_segment(self._disk, segment.name)
        with self._lock:
            # the last one had no entry, and too little room for the first
            if self._segments and self._segments[-1].name == segment.name:
                self._segments.pop()
            self._segments.append(segment)
            self._begun += 1

    def _copy_last(self, survey: LogSurvey) -> None:
        original = survey.segments[-1]
        content = self._head(survey.before) + survey.last
        name = segment_name(original.first, self._epoch)
        room = max(self._limits.segment_bytes, len(content))
        self._file = unnamed_segment(self._disk, name, content, reserve=room)
        name_segment(self._disk, name)
        kept = {segment.name for segment in survey.segments[:-1]} | {name}
        for old in self._disk.names():
            if old.endswith(SEGMENT) and old not in kept:
                self._disk.remove(old)
        self._disk.sync_folder()
        copy = Segment(name=name, first=original.first, size=len(content), room=room, ends=original.ends)
        self._segments = [*survey.segments[:-1], copy]

    def _head(self, state: Mapping[str, Any]) -> bytes:
        return head_of(self._log_id.wal_id, self._topic, self._epoch, state)

    def _full(self) -> IntakeFull:
        return IntakeFull(
            "the write-ahead log is full: rows come in faster than they reach the table, or the table can't be reached"
            if self._lacks is None
            else f"the write-ahead log can't have another segment: {self._lacks}",
            topic=self._topic,
            retry_seconds=RETRY_SECONDS,
        )

    def _fail(self, error: BaseException) -> IntakeEnded:
        """The last write may not be durable, and must not be synced again."""
        self.close()
        self._has_failed = True
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        self._ended = IntakeEnded(
            f"the write-ahead log failed: {reason}. The topic takes in nothing more until the server is started again",
            topic=self._topic,
        )
        return self._ended


def _most_bytes(batch: IntakeBatch) -> int:
    """Of a batch's entry, and of a fence before it."""
    texts = 2 * _TEXT_FACTOR * len(batch.client + batch.principal)
    return len(batch.body) + 2 * (_HEAD_BYTES + OVERHEAD) + _PART_BYTES * len(batch.rows) + texts
