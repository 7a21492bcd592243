"""The records that a user selects: partitions, and a start and an end as offsets or times.

    earliest | latest | 1200 | 2026-01-31T00:00:00Z

A time means the first offset at or after it, as in Kafka's own look-up. The end is not included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, assert_never

from archiver.archive.topic_archive import TopicArchive
from archiver.errors import ConfigError
from archiver.storage.segment import RowRange

_HINT = "write `earliest`, `latest`, an offset such as 1200, or a time such as 2026-01-31T00:00:00Z"


@dataclass(frozen=True, slots=True)
class AtOffset:
    """An offset, as a number."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """A time in ms since 1970."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class Earliest:
    """The beginning of the archive."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The end of the archive: the offset after the last one."""


Point: TypeAlias = AtOffset | AtTime | Earliest | Latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A part of a topic. Without `partitions` it has all of them."""

    start: Point = Earliest()
    end: Point = Latest()
    partitions: tuple[int, ...] = ()

    @classmethod
    def parse(cls, *, start: str | None = None, end: str | None = None, partitions: tuple[int, ...] = ()) -> Selection:
        """Parse what a person wrote; ConfigError where it is neither an offset nor a time."""
        return cls(
            start=Earliest() if start is None else parse_point(start),
            end=Latest() if end is None else parse_point(end),
            partitions=tuple(sorted(set(partitions))),
        )

    def resolve(self, archive: TopicArchive) -> Iterator[RowRange]:
        """Give the range of offsets of each partition; ConfigError if a partition isn't archived."""
        unknown = set(self.partitions) - set(archive.partitions)
        if unknown:
            raise ConfigError(
                "the archive has no such partition",
                topic=archive.topic,
                partitions=sorted(unknown),
                archived=archive.partitions,
            )
        for partition in self.partitions or archive.partitions:
            start = _offset(archive, partition, self.start)
            end = min(_offset(archive, partition, self.end), archive.end(partition))
            if start < end:
                yield RowRange(partition=partition, start_offset=start, end_offset=end)


def parse_point(text: str) -> Point:
    """Parse one start or end."""
    word = text.strip().lower()
    if word in ("earliest", "beginning"):
        return Earliest()
    if word in ("latest", "end"):
        return Latest()
    if word.isdecimal():
        return AtOffset(int(word))
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(f"this is neither an offset nor a time: {_HINT}", found=text) from None
    if moment.tzinfo is None:
        raise ConfigError("the time has no zone: end it with Z or an offset such as +02:00", found=text)
    return AtTime(_millis(moment))


def _offset(archive: TopicArchive, partition: int, point: Point) -> int:
    match point:
        case AtOffset(offset):
            return offset
        case AtTime(timestamp):
            found = archive.offset_for_time(partition, timestamp)
            return archive.end(partition) if found is None else found
        case Earliest():
            return 0
        case Latest():
            return archive.end(partition)
        case _:
            assert_never(point)


def _millis(moment: datetime) -> int:
    """Milliseconds since 1970, rounded up: rounded down, a time would include records from before it."""
    since = moment - datetime.fromtimestamp(0, moment.tzinfo)
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return -(-micros // 1_000)
