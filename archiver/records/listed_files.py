"""List data files that may hold selected records, from manifests alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent
from pyiceberg.table import Table

from archiver.archive.file_columns import MICROS_PER_TIME_COLUMN, bounds_of, values_of
from archiver.archive.manifests import live_entries, manifests_of
from archiver.archive.table_files import ValueBounds
from archiver.errors import ConfigError
from archiver.records.selection import AtOffset, AtTime, Latest, Point, Selection
from schema_mapping.columns.fixed import OFFSET_ID, PARTITION_ID

_FAR: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """Bounds (timestamps in ms) are None if unknown."""

    path: str
    partitions: ValueBounds | None
    offsets: ValueBounds | None
    times: ValueBounds | None
    records: int
    size_bytes: int
    place: tuple[object, ...]

    @classmethod
    def of(cls, file: DataFile) -> Self:
        lower, upper = file.lower_bounds or {}, file.upper_bounds or {}
        times = [
            ValueBounds(low // unit, high // unit)
            for field_id, unit in MICROS_PER_TIME_COLUMN
            for low, high in [bounds_of(lower, upper, field_id)]
            if low is not None and high is not None
        ]
        return cls(
            path=file.file_path,
            partitions=_bounds(*bounds_of(lower, upper, PARTITION_ID)),
            offsets=_bounds(*bounds_of(lower, upper, OFFSET_ID)),
            times=ValueBounds(min(time.low for time in times), max(time.high for time in times)) if times else None,
            records=file.record_count,
            size_bytes=file.file_size_in_bytes,
            place=values_of(file.partition),
        )


def listed_files(table: Table, selection: Selection) -> list[ListedFile]:
    """By partition and offset. Raises subclasses of StorageError."""
    table_files = list(_files(table))
    files = [file for file in table_files if _may_hold(file, selection, table_files)]
    return sorted(files, key=lambda file: (_low(file.partitions), _low(file.offsets), file.path))


def check_points(selection: Selection) -> None:
    """Raises ConfigError for a point that is no position in a file."""
    if isinstance(selection.start, Latest):
        raise ConfigError("--from is an offset or a time: no file begins at the end of the archive")


def time_text(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(0, UTC).timestamp() + milliseconds / 1000
    try:
        return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms since 1970"


def _files(table: Table) -> Iterator[ListedFile]:
    snapshot = table.current_snapshot()
    for manifest in () if snapshot is None else manifests_of(table, snapshot):
        if manifest.content is not ManifestContent.DATA:
            continue
        for entry in live_entries(table.io, manifest):
            if entry.data_file.content == DataFileContent.DATA:
                yield ListedFile.of(entry.data_file)


def _may_hold(file: ListedFile, selection: Selection, table_files: Sequence[ListedFile]) -> bool:
    if selection.partitions and file.partitions is not None:
        bounds = file.partitions
        if not any(bounds.low <= partition <= bounds.high for partition in selection.partitions):
            return False
    return not (_is_before(file, selection.start, table_files) or _is_from(file, selection.end, table_files))


def _is_before(file: ListedFile, start: Point, table_files: Sequence[ListedFile]) -> bool:
    match start:
        case AtOffset(offset):
            return file.offsets is not None and file.offsets.high < offset
        case AtTime(timestamp):
            lowest = min(
                (_low(neighbour.offsets) for neighbour in _reaching(file, timestamp, table_files)), default=None
            )
            return _is_of_one_partition(file) and (lowest is None or _high(file) < lowest)
        case _:
            return False


def _is_from(file: ListedFile, end: Point, table_files: Sequence[ListedFile]) -> bool:
    match end:
        case AtOffset(offset):
            return file.offsets is not None and file.offsets.low >= offset
        case AtTime(timestamp):
            reaching = [
                neighbour for neighbour in _reaching(file, timestamp, table_files) if neighbour.times is not None
            ]
            highest = min((_high(neighbour) for neighbour in reaching if _is_of_one_partition(neighbour)), default=None)
            return _is_of_one_partition(file) and highest is not None and _low(file.offsets) > highest
        case _:
            return False


def _reaching(file: ListedFile, timestamp: int, table_files: Sequence[ListedFile]) -> Iterator[ListedFile]:
    for neighbour in table_files:
        if _may_share_a_partition(file, neighbour) and (neighbour.times is None or neighbour.times.high >= timestamp):
            yield neighbour


def _may_share_a_partition(file: ListedFile, neighbour: ListedFile) -> bool:
    ours, next_to = file.partitions, neighbour.partitions
    return ours is None or next_to is None or (ours.low <= next_to.high and next_to.low <= ours.high)


def _is_of_one_partition(file: ListedFile) -> bool:
    return file.offsets is not None and file.partitions is not None and file.partitions.low == file.partitions.high


def _high(file: ListedFile) -> int:
    return _FAR if file.offsets is None else file.offsets.high


def _bounds(low: int | None, high: int | None) -> ValueBounds | None:
    return None if low is None or high is None else ValueBounds(low, high)


def _low(bounds: ValueBounds | None) -> int:
    return -1 if bounds is None else bounds.low
