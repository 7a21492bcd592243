"""The files that must leave or stay together because they share ranges (ADR 0072).

Recorded files have exactly the registered rows. Other files may have rows of each range in their bounds, unless its
recorded files are complete.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from archiver.archive.table_files import TableFile
from catalog.model import file_name
from catalog.registry.removable import RemovableRange

OFFSETS_END: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Ranges, and the files that may have records of them and no other range.

    `has_foreign` if recorded paths are not in the table, or other engines wrote files.
    """

    ranges: tuple[RemovableRange, ...]
    files: tuple[TableFile, ...]
    recorded: tuple[str, ...]
    has_foreign: bool

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """`strangers` are files that can't have records of a known range."""

    all: tuple[Component, ...]
    strangers: tuple[TableFile, ...]


def components(ranges: Sequence[RemovableRange], files: Iterable[TableFile]) -> Components:
    """`ranges` must have every range with records in one of the files."""
    owners: dict[str, list[int]] = defaultdict(list)
    for number, removable in enumerate(ranges):
        for path in removable.paths:
            owners[file_name(path)].append(number)
    table = {file_name(file.path): file for file in files}
    elsewhere = _Places((number, range_) for number, range_ in enumerate(ranges) if _has_rows_elsewhere(range_, table))
    joined = _Sets(len(ranges))
    for sharing in owners.values():  # also of a file that is gone: it can be deleted only without any of them
        for number in sharing[1:]:
            joined.join(sharing[0], number)
    placed: list[tuple[int, TableFile, bool]] = []
    strangers: list[TableFile] = []
    for name, file in table.items():
        own = owners.get(name)
        numbers = own or list(elsewhere.in_bounds(file))
        if not numbers:
            strangers.append(file)
            continue
        for later in numbers[1:]:
            joined.join(numbers[0], later)
        placed.append((numbers[0], file, own is None))
    members: dict[int, list[RemovableRange]] = defaultdict(list)
    for number, removable in enumerate(ranges):
        members[joined.find(number)].append(removable)
    theirs: dict[int, list[tuple[TableFile, bool]]] = defaultdict(list)
    for number, file, is_foreign in placed:
        theirs[joined.find(number)].append((file, is_foreign))
    return Components(
        all=tuple(_component(group, theirs.get(root, []), table) for root, group in members.items()),
        strangers=tuple(strangers),
    )


def reach_beside(
    ranges: Sequence[RemovableRange], files: Iterable[TableFile], partitions: Collection[int]
) -> dict[int, int]:
    """Return end offsets of files that may hold unrecorded rows of these ranges."""
    every = tuple(files)
    table = {file_name(file.path): file for file in every}
    recorded = {file_name(path) for range_ in ranges for path in range_.paths}
    elsewhere = _Places((number, range_) for number, range_ in enumerate(ranges) if _has_rows_elsewhere(range_, table))
    reach: dict[int, int] = {}
    for name, file in table.items():
        if name not in recorded and any(True for _ in elsewhere.in_bounds(file)):
            end = file.offsets.high + 1 if file.offsets else OFFSETS_END
            for partition in partitions:
                if file.partitions is None or file.partitions.low <= partition <= file.partitions.high:
                    reach[partition] = max(end, reach.get(partition, 0))
    return reach


def _has_rows_elsewhere(one: RemovableRange, table: Mapping[str, TableFile]) -> bool:
    if one.rows < one.expected:
        return True
    files = (table.get(file_name(path)) for path in one.paths)
    return any(file is None or file.has_deletes for file in files)


def _component(
    ranges: Sequence[RemovableRange], files: Sequence[tuple[TableFile, bool]], table: Mapping[str, TableFile]
) -> Component:
    recorded = tuple(dict.fromkeys(path for range_ in ranges for path in range_.paths))
    return Component(
        ranges=tuple(ranges),
        files=tuple(file for file, _ in files),
        recorded=recorded,
        has_foreign=any(is_foreign for _, is_foreign in files)
        or any(file_name(path) not in table for path in recorded),
    )


class _Places:
    def __init__(self, ranges: Iterable[tuple[int, RemovableRange]]) -> None:
        self._ranges: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for number, range_ in ranges:
            self._ranges[range_.partition].append((range_.start_offset, range_.end_offset, number))

    def in_bounds(self, file: TableFile) -> Iterator[int]:
        for partition, ranges in self._ranges.items():
            at = file.partitions
            if at is not None and not at.low <= partition <= at.high:
                continue
            low, high = 0, len(ranges)
            if file.offsets is not None:
                low = bisect_right(ranges, file.offsets.low, key=lambda bounds: bounds[1])
                high = bisect_left(ranges, file.offsets.high + 1, key=lambda bounds: bounds[0])
            yield from (number for _, _, number in ranges[low:high])


class _Sets:
    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def find(self, one: int) -> int:
        while self._above[one] != one:
            self._above[one] = self._above[self._above[one]]
            one = self._above[one]
        return one

    def join(self, one: int, other: int) -> None:
        self._above[self.find(other)] = self.find(one)
