"""The segments of a topic's log, and their survey at a start.

A segment `FIRST-EPOCH.wal` begins with a header frame: the log's state before its first entry. It gets this
name once its header is durable, so a segment without a header is damaged. Only the last segment may end
within a frame. The file `id` names the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from archiver.errors import BadLog
from archiver.intake.batches import BATCHES, LoggedBatch
from archiver.intake.disk import Disk, LogFile, disk_error
from archiver.intake.frames import Frame, frame, frames_after, read_frame, read_frames
from archiver.intake.state import IntakeState
from catalog.model import new_id

FORMAT: Final = 1
UNFINISHED: Final = ".new"
SEGMENT: Final = ".wal"
_ID: Final = "id"
_NAME: Final = re.compile(r"(?P<first>\d{20})-(?P<epoch>\d{10})\.wal")


@dataclass(slots=True, kw_only=True)
class Segment:
    """`size` are bytes of frames, `room` bytes on disk. `ends` are offsets after its rows."""

    name: str
    first: int
    size: int = 0
    room: int = 0
    ends: dict[int, int] = field(default_factory=dict)

    def add(self, batch: LoggedBatch) -> None:
        for part in batch.parts:
            self.ends[part.partition] = part.end_offset

    def is_covered(self, ends: Mapping[int, int]) -> bool:
        return all(end <= ends.get(partition, 0) for partition, end in self.ends.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class LogId:
    """Segments before `has_begun` belong to an earlier log."""

    wal_id: str
    has_begun: bool = False

    def write(self, disk: Disk) -> None:
        content = json.dumps({"format": FORMAT, "wal_id": self.wal_id, "has_begun": self.has_begun}).encode()
        disk.remove(f"{_ID}{UNFINISHED}")
        file = disk.create(f"{_ID}{UNFINISHED}", reserve=len(content))
        try:
            file.write(content)
            file.sync()
        finally:
            file.close()
        disk.rename(f"{_ID}{UNFINISHED}", _ID)
        disk.sync_folder()

    @classmethod
    def read(cls, disk: Disk, *, topic: str) -> LogId | None:
        """Raises BadLog."""
        if _ID not in disk.names():
            return None
        try:
            value = json.loads(disk.read(_ID))
            is_readable = value["format"] <= FORMAT
            log_id = cls(wal_id=value["wal_id"], has_begun=value["has_begun"])
        except (ValueError, KeyError, TypeError):
            raise BadLog("the file `id` of the write-ahead log is damaged: restore it", topic=topic) from None
        if not is_readable:
            raise BadLog(f"a newer archiver wrote the write-ahead log (format {value['format']})", topic=topic)
        return log_id


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSurvey:
    """`last` are the whole entries of the last segment, `before` the state before them."""

    log_id: LogId
    epoch: int = 0
    segments: tuple[Segment, ...] = ()
    state: IntakeState
    before: Mapping[str, Any] = field(default_factory=dict)
    last: bytes = b""

    @classmethod
    def read(cls, disk: Disk, *, topic: str, most_clients: int) -> LogSurvey:
        """Raises IntakeError, and BadLog if an acknowledged entry may be damaged."""
        try:
            log_id = LogId.read(disk, topic=topic)
            if log_id is None:
                log_id = LogId(wal_id=new_id())
                log_id.write(disk)
            names = segment_names(disk) if log_id.has_begun else {}
            if log_id.has_begun and not names:
                raise BadLog(
                    "the write-ahead log has no segment left: restore its folder. Acknowledged rows may not be in the"
                    " table yet. If there is no copy, `archiver abandon TOPIC --dry-run` prints which rows are lost",
                    topic=topic,
                    log=log_id.wal_id,
                )
            return _Surveying(disk, topic, most_clients, log_id).read(names)
        except OSError as error:
            raise disk_error(error, topic=topic) from error


def head_of(log_id: str, topic: str, epoch: int, state: Mapping[str, Any]) -> bytes:
    return frame({"kind": "header", "format": FORMAT, "log": log_id, "topic": topic, "epoch": epoch, "state": state})


def unnamed_segment(disk: Disk, name: str, content: bytes, *, reserve: int) -> LogFile:
    """With a durable beginning, for `name_segment`. Raises OSError."""
    unfinished = f"{name}{UNFINISHED}"
    disk.remove(unfinished)
    file = disk.create(unfinished, reserve=max(reserve, len(content)))
    try:
        file.write(content)
        file.sync()
    except BaseException:
        file.close()
        raise
    return file


def name_segment(disk: Disk, name: str) -> None:
    """Add a segment to the log, durably. After an OSError the log must end: it may or may not have it."""
    disk.rename(f"{name}{UNFINISHED}", name)
    disk.sync_folder()


def segment_name(first: int, epoch: int) -> str:
    return f"{first:020d}-{epoch:010d}.wal"


def entry_beginning(wal_id: str) -> bytes:
    return json.dumps({"log": wal_id}).removesuffix("}").replace(": ", ":").encode()


def entries(data: bytes) -> Iterator[Frame]:
    header = read_frame(data, 0)
    return iter(()) if header is None else read_frames(data, header.end)


def apply_entry(state: IntakeState, entry: Frame) -> LoggedBatch | None:
    """Raises ValueError for an unknown kind."""
    match entry.head["kind"]:
        case kind if kind in BATCHES:
            batch = LoggedBatch.from_json(entry.head)
            state.add(batch)
            return batch
        case "fence":
            state.fence(entry.head["client"], entry.head["incarnation"], entry.head.get("principal", ""))
            return None
        case kind:
            raise ValueError(kind)


def segment_names(disk: Disk) -> dict[int, str]:
    """The newest by first entry: a segment copied at a start may have an older original."""
    matches = (_NAME.fullmatch(name) for name in sorted(disk.names()))
    return {int(name["first"]): name.string for name in matches if name is not None}


class _Surveying:
    def __init__(self, disk: Disk, topic: str, most_clients: int, log_id: LogId) -> None:
        self._disk = disk
        self._topic = topic
        self._most_clients = most_clients
        self._log_id = log_id

    def read(self, names: Mapping[int, str]) -> LogSurvey:
        state, before, last, epoch = self._state({}), {}, b"", 0
        segments: list[Segment] = []
        for first, name in names.items():
            data = self._disk.read(name)
            header = self._header(name, data)
            if segments and state.sequence != first:
                raise self._damaged(segments[-1].name, segments[-1].size, f"it ends before entry {first}")
            before = header.head["state"]
            state = self._state(before)
            segment = Segment(name=name, first=first, size=header.end, room=len(data))
            for entry in read_frames(data, header.end):
                self._apply(state, segment, entry)
                segment.size = entry.end
            segments.append(segment)
            epoch, last = header.head["epoch"], data[header.end : segment.size]
        if segments:
            self._check_end(segments[-1], state)
        return LogSurvey(
            log_id=self._log_id, epoch=epoch, segments=tuple(segments), state=state, before=before, last=last
        )

    def _header(self, name: str, data: bytes) -> Frame:
        header = read_frame(data, 0)
        if header is None or header.head.get("kind") != "header":
            raise self._damaged(name, 0, "its header is unreadable")
        if header.head["format"] > FORMAT:
            raise self._damaged(name, 0, f"a newer archiver wrote it (format {header.head['format']})")
        if (header.head["topic"], header.head["log"]) != (self._topic, self._log_id.wal_id):
            raise self._damaged(name, 0, f"it belongs to topic {header.head['topic']}, log {header.head['log']}")
        return header

    def _apply(self, state: IntakeState, segment: Segment, entry: Frame) -> None:
        if entry.head["sequence"] != state.sequence:
            raise self._damaged(segment.name, entry.position, f"entry {state.sequence} is missing")
        try:
            batch = apply_entry(state, entry)
        except ValueError as error:
            reason = f"a newer archiver wrote an entry of kind {error.args[0]!r}"
            raise self._damaged(segment.name, entry.position, reason) from None
        if batch is not None:
            segment.add(batch)

    def _check_end(self, segment: Segment, state: IntakeState) -> None:
        """A later entry knows which entries were durable when it was written."""
        beginning = entry_beginning(self._log_id.wal_id)
        for entry in frames_after(self._disk.read(segment.name), segment.size, beginning):
            if entry.head.get("durable", 0) > state.sequence:
                raise self._damaged(segment.name, segment.size, f"entry {state.sequence} was durable")

    def _state(self, value: Mapping[str, Any]) -> IntakeState:
        return IntakeState.from_json(value, most_clients=self._most_clients)

    def _damaged(self, name: str, position: int, reason: str) -> BadLog:
        return BadLog(
            f"the write-ahead log is damaged: {reason}. Acknowledged rows after this position may not be in the table:"
            " restore the segment. If there is no copy, `archiver abandon TOPIC --dry-run` prints which rows are lost",
            topic=self._topic,
            segment=name,
            position=position,
        )
