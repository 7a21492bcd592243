"""The folder of one table's trail: entries as objects, old ones packed together, and checkpoints (docs/audit.md).

An entry's object is named after its number. A pack has many entries, one on each line, in the very bytes that they had
alone; it is written and read back before the single objects are removed. So a trail reads the same wherever that was
interrupted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from archiver.audit.entry import hash_of
from archiver.errors import ObjectMissing, StorageError, StorageUnavailable
from archiver.storage.objects import ListedObject, ObjectStore

LEAST_PACKED: Final = 256
"""So many single entries are packed. With fewer, a pack would have to be packed again soon."""
MOST_PACKED: Final = 2_048
READERS: Final = 16

_ENTRY: Final = re.compile(r"entry-(?P<first>\d{10,})\.json")
_PACK: Final = re.compile(r"entries-(?P<first>\d{10,})-(?P<last>\d{10,})-[0-9a-f]{16}\.jsonl")
_CHECKPOINT: Final = re.compile(r"checkpoint-(?P<entries>\d{10,})-\d{8}T\d{12}Z\.json")
_LOOKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryObject:
    """An object with entries: the numbers of the first and the last one, by its name."""

    path: str
    first: int
    last: int

    @property
    def is_alone(self) -> bool:
        """Whether it has one entry and is named so."""
        return self.path.endswith(".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLine:
    """An entry's bytes, with its object's path, and the number that it should have by its place there."""

    path: str
    place: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What a folder has: objects with entries, by number, and checkpoints, the oldest first."""

    entries: tuple[EntryObject, ...]
    checkpoints: tuple[str, ...]

    @property
    def last(self) -> int:
        """The number of the last entry, by the objects' names. 0 where there is none."""
        return max((each.last for each in self.entries), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailFolder:
    """The folder at `path` in a store. Methods raise subclasses of StorageError."""

    path: str
    objects: ObjectStore

    def listed(self) -> Listed:
        """What the folder has."""
        found = self.objects.list(self.path)
        return Listed(entries=_entry_objects(found), checkpoints=_checkpoints(found))

    def write(self, seq: int, line: str) -> None:
        """Write an entry. Writing it again changes nothing. StorageError where another entry has its number."""
        path, data = f"{self.path}/entry-{seq:010d}.json", line.encode()
        if not self.objects.exists(path):
            self.objects.write(path, data)
        elif self.objects.read(path) != data:
            raise StorageError(
                "another entry of the audit trail has this number already: the registry's database was set back, or two"
                " registries write one archive. Nothing was replaced",
                file=path,
            )

    def write_checkpoint(self, name: str, data: bytes) -> None:
        """Write a checkpoint under the name that `checkpoint_name` gives."""
        self.objects.write(f"{self.path}/{name}", data)

    def lines(self, *, first: int = 1) -> Iterator[StoredLine]:
        """Yield every entry by number, from those objects on that may have number `first`.

        An entry that is alone and in a pack comes twice. Damaged objects give whatever lines they have.
        """
        seen: set[str] = set()
        for left in reversed(range(_LOOKS)):
            left_over = [each for each in self.listed().entries if each.last >= first and each.path not in seen]
            missing: list[ObjectMissing] = []
            with ThreadPoolExecutor(READERS, thread_name_prefix="audit") as pool:
                for start in range(0, len(left_over), READERS):
                    some = left_over[start : start + READERS]
                    for one, found in zip(some, pool.map(self._read, (each.path for each in some)), strict=True):
                        if isinstance(found, ObjectMissing):
                            missing.append(found)
                            continue
                        seen.add(one.path)
                        for number, line in enumerate(found, one.first):
                            yield StoredLine(path=one.path, place=number, data=line)
            if not missing:
                return
            if not left:  # packed while we read; the next list has the pack
                raise StorageUnavailable(
                    "entries are packed faster than they can be read: run it again", cause=missing[-1]
                )

    def checkpoints(self) -> Iterator[tuple[str, bytes]]:
        """Yield every checkpoint's bytes with its path, the oldest first."""
        for path in self.listed().checkpoints:
            yield path, self.objects.read(path)

    def pack(self, *, through: int) -> int:
        """Pack single entries up to a number, if there are many. Returns how many.

        Entries above the number may still be written again by whoever made them.
        """
        alone = [each for each in self.listed().entries if each.is_alone and each.last <= through]
        packed = 0
        for run in _runs(alone):
            if len(run) >= LEAST_PACKED:
                self._pack(run)
                packed += len(run)
        return packed

    def _pack(self, run: Sequence[EntryObject]) -> None:
        with ThreadPoolExecutor(READERS, thread_name_prefix="audit") as pool:
            data = b"".join(line + b"\n" for line in pool.map(self.objects.read, [each.path for each in run]))
            name = f"entries-{run[0].first:010d}-{run[-1].last:010d}-{hash_of(data)[:16]}.jsonl"
            self.objects.write(f"{self.path}/{name}", data)
            if self.objects.read(f"{self.path}/{name}") != data:
                raise StorageError(
                    "the store gives back other bytes than were written; nothing was removed",
                    file=f"{self.path}/{name}",
                )
            list(pool.map(self.objects.delete, [each.path for each in run]))

    def _read(self, path: str) -> list[bytes] | ObjectMissing:
        try:
            data = self.objects.read(path)
        except ObjectMissing as error:
            return error
        return data.splitlines() if path.endswith(".jsonl") else [data]


def checkpoint_name(entries: int, time: str) -> str:
    """The name of a checkpoint over so many entries: it sorts by their number, then by time (as entries have it)."""
    return f"checkpoint-{entries:010d}-{re.sub(r'[-:.]', '', time)}.json"


def _entry_objects(found: Sequence[ListedObject]) -> tuple[EntryObject, ...]:
    objects = []
    for each in found:
        if match := _ENTRY.fullmatch(each.name):
            objects.append(EntryObject(path=each.path, first=int(match["first"]), last=int(match["first"])))
        elif match := _PACK.fullmatch(each.name):
            objects.append(EntryObject(path=each.path, first=int(match["first"]), last=int(match["last"])))
    return tuple(sorted(objects, key=lambda each: (each.first, each.last)))


def _checkpoints(found: Sequence[ListedObject]) -> tuple[str, ...]:
    return tuple(each.path for each in sorted(found, key=lambda each: each.name) if _CHECKPOINT.fullmatch(each.name))


def _runs(alone: Sequence[EntryObject]) -> Iterator[list[EntryObject]]:
    """Entries without a gap between their numbers, so many at a time as a pack has at most."""
    run: list[EntryObject] = []
    for each in alone:
        if run and (each.first != run[-1].last + 1 or len(run) == MOST_PACKED):
            yield run
            run = []
        run.append(each)
    if run:
        yield run
