"""Choose the data files to merge: small, overlapping, or with deleted rows. Pure functions.

A group is of one table partition, spec and Kafka partition. Files of older specs need only the same Kafka partition.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from archiver.archive.table_files import TableFile

SMALL: Final = 0.75
"""Files below this share of the target size are small."""
ROOM: Final = 1.1
"""A group may have so many times the target size: its file comes out smaller, for there are fewer dictionaries."""
MOST_FILES: Final = 512
"""How many files one task takes at most. Their footers are in memory at the same time."""
MOVED: Final = 4
"""A group of files that move may have so many times the target size: its rows go to many files."""
PAYS: Final = 4
"""With `saves_work`, this many times `min_files` is put together even if one large file makes up most of it."""


class Reason(StrEnum):
    SMALL = "small"
    """The files are smaller than they should be."""
    OVERLAP = "overlap"
    """Offsets of the files overlap, so a replay has to sort them."""
    DELETES = "deletes"
    """Others deleted rows of the files by delete files, which every reader has to apply."""
    MIXED = "mixed"
    """A file has rows of several Kafka partitions, or its manifest doesn't say of which."""
    NAN = "nan"
    """A file has bounds of a column with NaNs, by which DuckDB leaves out rows."""
    SPEC = "spec"
    """The files are of another partition spec than the one that they shall have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRange:
    """`is_whole` if the file has all of its rows; other ranges keep their borders."""

    partition: int
    start_offset: int
    end_offset: int
    is_whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """`ranges` is empty if another engine wrote the file."""

    file: TableFile
    ranges: tuple[SourceRange, ...] = ()
    has_deletes: bool = False

    @property
    def partition(self) -> int | None:
        """None if there are several, or the manifest doesn't say."""
        partitions = self.file.partitions
        return partitions.low if partitions and partitions.low == partitions.high and self.file.offsets else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactLimits:
    """With `spec_id` files of other specs move to it. `left` are paths of files that stay.

    `saves_work` skips few files that would be rewritten each time: one with most of the bytes, or of mixed Kafka
    partitions. Empty `partitions` are all.
    """

    target_bytes: int
    min_files: int = 5
    saves_work: bool = False
    partitions: frozenset[int] = frozenset()
    spec_id: int | None = None
    left: frozenset[str] = frozenset()

    def moves(self, each: SourceFile) -> bool:
        return self.spec_id is not None and each.file.spec_id != self.spec_id and not self.leaves(each)

    def leaves(self, each: SourceFile) -> bool:
        return each.file.path in self.left

    @property
    def small_below(self) -> int:
        return int(self.target_bytes * SMALL)

    @property
    def most_bytes(self) -> int:
        return int(self.target_bytes * ROOM)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Files by lowest offset. With `is_cut` they become several files of the target size."""

    files: tuple[SourceFile, ...]
    reasons: frozenset[Reason]
    is_cut: bool = False

    @property
    def is_mixed(self) -> bool:
        return Reason.MIXED in self.reasons

    @property
    def is_moved(self) -> bool:
        return Reason.SPEC in self.reasons

    @property
    def size_bytes(self) -> int:
        return sum(file.file.size_bytes for file in self.files)

    def expected_files(self, target_bytes: int) -> int:
        return max(1, round(self.size_bytes / target_bytes)) if self.is_cut else 1

    @property
    def rows(self) -> int:
        """Includes deleted rows."""
        return sum(file.file.rows for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.file.path for file in self.files)


def choose(files: Iterable[SourceFile], limits: CompactLimits) -> list[FileGroup]:
    """Return disjoint groups. Groups that hide rows come first."""
    places: dict[tuple[object, ...], list[SourceFile]] = defaultdict(list)
    moving: dict[int | None, list[SourceFile]] = defaultdict(list)
    for file in files:
        if _is_asked_for(file, limits):
            if limits.moves(file):
                moving[file.partition].append(file)
            else:
                places[_place(file)].append(file)
    groups: list[FileGroup] = []
    for partition, sources in moving.items():
        staying = (source for key, settled in places.items() if key[-1] == partition for source in settled)
        groups += _moves(sources, sorted(_low(source)[0] for source in staying), limits)
    for key, sources in places.items():
        is_mixed = key[-1] is None
        groups += _mixed_groups(sources, limits) if is_mixed else _neighbours(sources, limits)
    return sorted(groups, key=lambda group: Reason.NAN not in group.reasons)


def _is_asked_for(each: SourceFile, limits: CompactLimits) -> bool:
    partitions = each.file.partitions
    return (
        not limits.partitions
        or partitions is None
        or any(partitions.low <= partition <= partitions.high for partition in limits.partitions)
    )


def _mixed_groups(files: list[SourceFile], limits: CompactLimits) -> Iterator[FileGroup]:
    for part in _by_writer(file for file in files if not limits.leaves(file)):
        for some in _portions(_each(part), limits.most_bytes):
            if _pays(some, limits):
                yield FileGroup(
                    files=tuple(source for atom in some for source in atom), reasons=_reasons(some), is_cut=True
                )


Atom: TypeAlias = tuple[SourceFile, ...]
"""Files whose offsets overlap, directly or through others: they can only be rewritten together."""


def _moves(files: list[SourceFile], staying: Sequence[int], limits: CompactLimits) -> Iterator[FileGroup]:
    """No lowest offset of `staying` files is within a group: the new files would overlap."""
    for part in _by_writer(files):
        run: list[Atom] = []
        high = 0
        for atom in _movable(part, limits):
            if run and bisect_right(staying, high) < bisect_left(staying, _low(atom[0])[0]):
                yield from _moved(run, limits)
                run = []
            run.append(atom)
            high = max(
                (source.file.offsets.high for member in run for source in member if source.file.offsets), default=0
            )
        yield from _moved(run, limits)


def _movable(files: list[SourceFile], limits: CompactLimits) -> Iterator[Atom]:
    if files[0].partition is None:
        yield from _each(files)
        return
    for atom in _atoms(files):
        if len(atom) <= MOST_FILES and _size(atom) <= MOVED * limits.target_bytes:
            yield atom
            continue
        places: dict[tuple[object, ...], list[SourceFile]] = defaultdict(list)
        for source in atom:
            places[_place(source)].append(source)
        for sources in places.values():
            yield from _atoms(sources)


def _moved(run: list[Atom], limits: CompactLimits) -> Iterator[FileGroup]:
    for some in _portions(run, MOVED * limits.target_bytes):
        reasons = _reasons(some) & {Reason.MIXED, Reason.DELETES, Reason.NAN} | {Reason.SPEC}
        yield FileGroup(files=tuple(source for atom in some for source in atom), reasons=reasons, is_cut=True)


def _neighbours(files: list[SourceFile], limits: CompactLimits) -> Iterator[FileGroup]:
    run: list[Atom] = []
    for atom in _atoms(files):
        parts = _by_writer(atom)
        stays = _is_good(atom, limits) or any(map(limits.leaves, atom))
        if stays or len(parts) > 1 or (run and _is_known(run[0]) != _is_known(atom)):
            yield from _of_run(run, limits)
            run = []
        if stays:
            continue
        if len(parts) > 1:
            for part in parts:
                yield from _neighbours(part, limits)
        else:
            run.append(atom)
    yield from _of_run(run, limits)


def _of_run(run: list[Atom], limits: CompactLimits) -> Iterator[FileGroup]:
    for some in _portions(run, limits.most_bytes):
        if _pays(some, limits):
            yield FileGroup(
                files=tuple(source for atom in some for source in atom),
                reasons=_reasons(some),
                is_cut=sum(map(_size, some)) > limits.most_bytes,
            )


def _by_writer(files: Iterable[SourceFile]) -> list[list[SourceFile]]:
    """A rewrite can't take registered files together with files of other engines."""
    parts: dict[bool, list[SourceFile]] = defaultdict(list)
    for file in files:
        parts[bool(file.ranges)].append(file)
    return list(parts.values())


def _is_known(atom: Atom) -> bool:
    return bool(atom[0].ranges)


def _atoms(files: list[SourceFile]) -> Iterator[Atom]:
    cluster: list[SourceFile] = []
    high = -1
    for file in sorted(files, key=_low):
        assert file.file.offsets is not None
        if cluster and file.file.offsets.low > high:
            yield tuple(cluster)
            cluster, high = [], -1
        cluster.append(file)
        high = max(high, file.file.offsets.high)
    if cluster:
        yield tuple(cluster)


def _portions(atoms: list[Atom], most_bytes: int) -> Iterator[list[Atom]]:
    some: list[Atom] = []
    size = count = 0
    for atom in atoms:
        if some and (size + _size(atom) > most_bytes or count + len(atom) > MOST_FILES):
            yield some
            some, size, count = [], 0, 0
        some.append(atom)
        size += _size(atom)
        count += len(atom)
    if some:
        yield some


def _is_good(atom: Atom, limits: CompactLimits) -> bool:
    (first, *rest) = atom
    is_right = not (first.has_deletes or first.file.has_nan_bounds)
    return not rest and is_right and first.file.size_bytes >= limits.small_below


def _pays(some: list[Atom], limits: CompactLimits) -> bool:
    size, count = sum(map(_size, some)), len(some)
    reasons = _reasons(some)
    if reasons - {Reason.SMALL, Reason.MIXED}:
        return True
    if Reason.MIXED in reasons:  # a small file of several Kafka partitions becomes several smaller ones
        return not limits.saves_work or count >= limits.min_files or size >= limits.small_below
    if count < limits.min_files and (count == 1 or size < limits.target_bytes):
        return False
    is_spread = 2 * max(map(_size, some)) <= size
    return not limits.saves_work or is_spread or count >= PAYS * limits.min_files


def _reasons(some: list[Atom]) -> frozenset[Reason]:
    reasons = set()
    for atom in some:
        if any(source.partition is None for source in atom):
            reasons.add(Reason.MIXED)
        elif len(atom) > 1:
            reasons.add(Reason.OVERLAP)
        if any(source.has_deletes for source in atom):
            reasons.add(Reason.DELETES)
        if any(source.file.has_nan_bounds for source in atom):
            reasons.add(Reason.NAN)
    return frozenset(reasons or {Reason.SMALL})


def _each(files: Iterable[SourceFile]) -> list[Atom]:
    return [(file,) for file in sorted(files, key=_low)]


def _place(each: SourceFile) -> tuple[object, ...]:
    return each.file.spec_id, each.file.partition_values, each.partition


def _size(atom: Atom) -> int:
    return sum(source.file.size_bytes for source in atom)


def _low(each: SourceFile) -> tuple[int, str]:
    return (each.file.offsets.low if each.file.offsets else 0), each.file.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """`parallel` 0 means all slots of the engine.

    A run starts no group beyond `most_bytes`. Groups above `largest_group` bytes are left: a task can't be cut.
    """

    parallel: int = 0
    most_bytes: int | None = None
    largest_group: int | None = None
    commit_seconds: float = 300.0
    is_over: Callable[[], bool] = lambda: False
