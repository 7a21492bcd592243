"""Find all whole entries of a log that may be damaged.

Some may never have been acknowledged: if clients send them again, the answer has these offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from archiver.errors import BadLog, IntakeError
from archiver.intake.batches import BATCHES, LoggedBatch
from archiver.intake.clients import Clients
from archiver.intake.disk import Disk
from archiver.intake.frames import Frame, frames_after, read_frame, read_frames
from archiver.intake.segments import FORMAT, LogId, LogSurvey, apply_entry, entry_beginning, segment_names
from archiver.intake.state import IntakeState
from catalog.offset_range import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """`state` counts all readable entries. `parts` are readable rows in order.

    `unreadable` are errors by segment. With `is_whole` nothing is damaged.
    """

    state: IntakeState
    parts: Mapping[int, tuple[OffsetRange, ...]] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = False


def find_salvage(disk: Disk, *, topic: str, wal_id: str, states: Iterable[Mapping[str, Any]]) -> Salvage:
    """Changes nothing. `states` are known without the folder."""
    state = IntakeState(clients=Clients(most=0))
    for value in states:
        state = _newer(state, value)
    unreadable: dict[str, str] = {}
    parts: dict[int, list[OffsetRange]] = {}
    for entry in _frames(disk, topic, wal_id, unreadable):
        if entry.head["kind"] == "header":
            state = _newer(state, entry.head["state"])
            continue
        if entry.head["kind"] in BATCHES:
            for part in LoggedBatch.from_json(entry.head).parts:
                ranges = parts.setdefault(part.partition, [])
                if not ranges or part.base_offset >= ranges[-1].end:
                    ranges.append(OffsetRange(part.partition, part.base_offset, part.end_offset - 1))
        if entry.head["sequence"] >= state.sequence:
            state.sequence = entry.head["sequence"]
            apply_entry(state, entry)
    return Salvage(
        state=state,
        parts={partition: tuple(offsets) for partition, offsets in parts.items()},
        unreadable=unreadable,
        is_whole=not unreadable and _is_whole(disk, topic, wal_id),
    )


def salvaged_batches(disk: Disk, *, topic: str, wal_id: str) -> Iterator[tuple[LoggedBatch, memoryview]]:
    for entry in _frames(disk, topic, wal_id, {}):
        if entry.head["kind"] in BATCHES:
            yield LoggedBatch.from_json(entry.head), entry.body


def _frames(disk: Disk, topic: str, wal_id: str, unreadable: dict[str, str]) -> Iterator[Frame]:
    for name in segment_names(disk).values():
        try:
            data = disk.read(name)
        except OSError as error:
            unreadable[name] = error.strerror or str(error)
            continue
        position = 0
        header = read_frame(data, 0)
        if header is not None:
            if header.head.get("kind") != "header" or header.head["format"] > FORMAT:
                raise BadLog("a newer archiver wrote the write-ahead log", topic=topic, segment=name)
            if (header.head["topic"], header.head["log"]) != (topic, wal_id):
                unreadable[name] = f"it belongs to topic {header.head['topic']}, log {header.head['log']}"
                continue
            yield header
            position = header.end
            for entry in read_frames(data, position):
                yield entry
                position = entry.end
        yield from frames_after(data, position, entry_beginning(wal_id))


def _newer(state: IntakeState, value: Mapping[str, Any]) -> IntakeState:
    other = IntakeState.from_json(value, most_clients=0)
    return other if other.sequence >= state.sequence else state


def _is_whole(disk: Disk, topic: str, wal_id: str) -> bool:
    try:
        log_id = LogId.read(disk, topic=topic)
        if log_id is None or log_id.wal_id != wal_id or not log_id.has_begun:
            return False
        LogSurvey.read(disk, topic=topic, most_clients=0)
    except (IntakeError, OSError):
        return False
    return True
