"""Select records by partitions, a start and an end, and a condition.

    earliest | latest | 1200 | 2026-01-31 | 2026-01-31T00:00:00Z

A day is its midnight in UTC. A time means the first offset at or after it. The end is exclusive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, assert_never

import pyarrow as pa

from archiver.archive.topic_archive import TopicArchive
from archiver.errors import ConfigError
from archiver.records.where_syntax import moment_of
from archiver.storage.row_columns import NO_TIMESTAMP
from archiver.storage.segment import RowRange

if TYPE_CHECKING:
    from archiver.records.where import Where

_HINT = (
    "write `earliest`, `latest`, an offset such as 1200, a day such as 2026-01-31, or a time such as"
    " 2026-01-31T00:00:00Z"
)


@dataclass(frozen=True, slots=True)
class AtOffset:
    offset: int


@dataclass(frozen=True, slots=True)
class AtTime:
    timestamp: int


@dataclass(frozen=True, slots=True)
class Earliest: ...


@dataclass(frozen=True, slots=True)
class Latest:
    """The offset after the archive's last one."""


Point: TypeAlias = AtOffset | AtTime | Earliest | Latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Empty `partitions` mean all."""

    start: Point = Earliest()
    end: Point = Latest()
    partitions: tuple[int, ...] = ()
    where: Where | None = None

    @classmethod
    def parse(
        cls,
        *,
        start: str | None = None,
        end: str | None = None,
        partitions: tuple[int, ...] = (),
        where: str | None = None,
    ) -> Selection:
        """Raises ConfigError, also if the end is before the start."""
        selection = cls(
            start=Earliest() if start is None else parse_point(start),
            end=Latest() if end is None else parse_point(end),
            partitions=tuple(sorted(set(partitions))),
            where=None if where is None else _parsed(where),
        )
        selection._check_order(start, end)
        return selection

    @property
    def start_text(self) -> str:
        """Equal for equal starts, empty for the beginning."""
        match self.start:
            case AtOffset(offset):
                return str(offset) if offset else ""
            case AtTime(timestamp):
                return f"{timestamp} ms since 1970"
            case Earliest():
                return ""
            case Latest():
                return "latest"
            case _:
                assert_never(self.start)

    def filter(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The condition must not name columns: see `matching`."""
        return records if self.where is None else self.where.filter(records)

    def _check_order(self, start: str | None, end: str | None) -> None:
        match self.start, self.end:
            case (AtOffset(first), AtOffset(last)) | (AtTime(first), AtTime(last)):
                is_inverted = first > last
            case (Latest(), Earliest()) | (AtOffset(), Earliest()) | (AtTime(), Earliest()):
                is_inverted = self.start != AtOffset(0)
            case _:
                is_inverted = False
        if is_inverted:
            raise ConfigError("--from comes after --to: nothing lies between them", start=start, end=end)

    def chosen(self, archive: TopicArchive) -> tuple[int, ...]:
        """Raises ConfigError if a partition isn't archived."""
        check_partitions(archive, self.partitions)
        return self.partitions or archive.partitions

    def start_offset(self, archive: TopicArchive, partition: int) -> int:
        return _offset(archive, partition, self.start)

    def end_offset(self, archive: TopicArchive, partition: int) -> int:
        """Exclusive, at most the archive's end."""
        return min(_offset(archive, partition, self.end), archive.end(partition))

    def resolve(self, archive: TopicArchive) -> Iterator[RowRange]:
        """Yield ranges that may hold selected records, without retired ones. Raises ConfigError as `chosen`."""
        for partition in self.chosen(archive):
            start, end = self.start_offset(archive, partition), self.end_offset(archive, partition)
            start = max(start, archive.first_offset(partition))
            narrowed = self.narrowed(RowRange(partition=partition, start_offset=start, end_offset=end))
            if narrowed is not None:
                yield narrowed

    def narrowed(self, wanted: RowRange) -> RowRange | None:
        if self.where is not None:
            bounds = self.where.bounds(wanted.partition)
            if bounds is None:
                return None
            wanted = replace(
                wanted,
                start_offset=max(wanted.start_offset, bounds.low_offset),
                end_offset=min(wanted.end_offset, bounds.high_offset + 1),
                min_timestamp=bounds.low_time if bounds.low_time > NO_TIMESTAMP else None,
            )
        return wanted if wanted.start_offset < wanted.end_offset else None


def _parsed(text: str) -> Where:
    from archiver.records.where import Where

    return Where.parse(text)


def parse_point(text: str) -> Point:
    """Raises ConfigError."""
    word = text.strip().lower()
    if word in ("earliest", "beginning"):
        return Earliest()
    if word in ("latest", "end"):
        return Latest()
    if word.isdecimal():
        return AtOffset(int(word))
    try:
        moment = moment_of(text.strip())
    except ValueError:
        raise ConfigError(f"this is neither an offset nor a time: {_HINT}", found=text) from None
    if moment.tzinfo is None:
        raise ConfigError("the time has no zone: end it with Z or an offset such as +02:00", found=text)
    return AtTime(_millis(moment))


def check_partitions(archive: TopicArchive, partitions: Iterable[int]) -> None:
    """Raises ConfigError."""
    unknown = set(partitions) - set(archive.partitions)
    if unknown:
        raise ConfigError(
            "the archive has no such partition",
            topic=archive.topic,
            partitions=sorted(unknown),
            archived=archive.partitions,
        )


def _offset(archive: TopicArchive, partition: int, point: Point) -> int:
    match point:
        case AtOffset(offset):
            return offset
        case AtTime(timestamp):
            since = archive.offset_for_time(partition, timestamp)
            return archive.end(partition) if since is None else since
        case Earliest():
            return 0
        case Latest():
            return archive.end(partition)
        case _:
            assert_never(point)


def _millis(moment: datetime) -> int:
    """Rounded up, to exclude earlier records."""
    since = moment - datetime.fromtimestamp(0, moment.tzinfo)
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return -(-micros // 1_000)
