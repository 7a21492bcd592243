"""The folder of one table's trail: entries as objects, old ones packed together, and checkpoints (docs/audit.md).

An entry's object is named after its number. A pack has many entries, one on each line, in the very bytes that they had
alone; it is written and read back before the single objects are removed. So a trail reads the same wherever that was
interrupted.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from archiver.audit.entry import hash_of
from archiver.errors import ObjectMissing, StorageError, StorageUnavailable
from archiver.fault_points import AuditPoint, pass_point
from archiver.storage.objects import ListedObject, ObjectStore
from catalog.iceberg.deletion_gate import OwnFolder

LEAST_PACKED: Final = 256
"""So many single entries are packed. With fewer, a pack would have to be packed again soon."""
MOST_PACKED: Final = 2_048
LEAST_PACKS: Final = 16
"""So many small packs are packed together."""
MOST_TOGETHER: Final = 16_384
"""A pack of packs has no more entries."""
PACK_SECONDS: Final = 3_600.0
"""Younger packs stay as they are: whoever lists the folder may have missed them, and relies on what they replaced."""
READERS: Final = 16

_LOG = logging.getLogger(__name__)
_SAID: Final[set[str]] = set()
"""The folders of which this process has said that their store doesn't let objects go."""

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
    modified_ms: int | None = None

    @property
    def entries(self) -> int:
        """How many entries it has."""
        return self.last - self.first + 1

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
        """What the folder has, listed until a list has all entries that the list before had.

        A store lists page by page. While entries are packed, a list may pass the pack's place before that is written,
        and pass the single entries after they are removed.
        """
        found = self.objects.list(self.path)
        for _ in range(_LOOKS):
            before, found = found, self.objects.list(self.path)
            if {each.path for each in before} <= {each.path for each in found}:
                break
        else:
            raise StorageUnavailable(
                "entries are packed faster than they can be listed: run it again", folder=self.path
            )
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
        """Pack single entries up to a number, if there are many, and small packs. Returns how many objects.

        Entries above the number may still be written again by whoever made them.
        """
        listed = self.listed().entries
        before_ms = (time.time() - PACK_SECONDS) * 1_000
        packed = {each.path for pack in listed for each in self._remove_packed(pack, listed)}
        left = [each for each in listed if each.path not in packed]
        alone = [each for each in left if each.is_alone and each.last <= through]
        small = [each for each in left if each.modified_ms is not None and each.modified_ms < before_ms]
        small = [each for each in small if not each.is_alone and each.entries * 2 <= MOST_TOGETHER]
        runs = [run for run in _runs(alone, most=MOST_PACKED) if len(run) >= LEAST_PACKED]
        runs += [run for run in _runs(small, most=MOST_TOGETHER) if len(run) >= LEAST_PACKS]
        for run in runs:
            self._pack(run)
        return sum(map(len, runs))

    def _pack(self, run: Sequence[EntryObject]) -> None:
        with ThreadPoolExecutor(READERS, thread_name_prefix="audit") as pool:
            lines = [line for found in pool.map(self._whole, run) for line in found]
            data = b"".join(line + b"\n" for line in lines)
            name = f"entries-{run[0].first:010d}-{run[-1].last:010d}-{hash_of(data)[:16]}.jsonl"
            self.objects.write(f"{self.path}/{name}", data)
            pass_point(AuditPoint.PACK_WRITTEN)
            if self.objects.read(f"{self.path}/{name}") != data:
                raise StorageError(
                    "the store gives back other bytes than were written; nothing was removed",
                    file=f"{self.path}/{name}",
                )
            refused = [each for each in pool.map(self._removed, run) if each is not None]
        if refused:
            self._say(refused[0])

    def _remove_packed(self, pack: EntryObject, listed: Sequence[EntryObject]) -> Sequence[EntryObject]:
        """Remove objects whose entries a pack has: packing was cut short, or the store refused it. Return them all."""
        inside = [each for each in listed if _has(pack, each)]
        if inside and self.path not in _SAID:
            lines = self._whole(pack)
            for each in inside:
                if self._whole(each) == lines[each.first - pack.first : each.last - pack.first + 1]:
                    refused = self._removed(each)
                    if refused is not None:
                        self._say(refused)
                        break
        return inside

    def _say(self, refused: StorageError) -> None:
        """Say once that the store keeps what is packed."""
        if self.path not in _SAID:
            _SAID.add(self.path)
            _LOG.warning(
                "%s: entries of the audit trail are packed, and the store doesn't let their own objects go. They do no"
                " harm: %s",
                self.path,
                refused,
            )

    def _whole(self, each: EntryObject) -> list[bytes]:
        """The entries of an object. StorageError where it isn't what its name says."""
        data = self.objects.read(each.path)
        lines = [data] if each.is_alone else data.splitlines()
        is_same = each.is_alone or each.path.endswith(f"-{hash_of(data)[:16]}.jsonl")
        if len(lines) != each.entries or not is_same or (each.is_alone and b"\n" in data):
            raise StorageError(
                "an object of the audit trail isn't what its name says; `archiver audit check` tells more",
                file=each.path,
            )
        return lines

    def _removed(self, each: EntryObject) -> StorageError | None:
        """Remove an object. The error where the store doesn't let it go."""
        try:
            self.objects.delete(each.path, OwnFolder(self.path))
        except StorageUnavailable:
            raise
        except StorageError as error:
            return error
        return None

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
            first, last = int(match["first"]), int(match["first"])
        elif match := _PACK.fullmatch(each.name):
            first, last = int(match["first"]), int(match["last"])
        else:
            continue
        objects.append(EntryObject(path=each.path, first=first, last=last, modified_ms=each.modified_ms))
    return tuple(sorted(objects, key=lambda each: (each.first, each.last)))


def _checkpoints(found: Sequence[ListedObject]) -> tuple[str, ...]:
    return tuple(each.path for each in sorted(found, key=lambda each: each.name) if _CHECKPOINT.fullmatch(each.name))


def _has(pack: EntryObject, each: EntryObject) -> bool:
    """Whether a pack has the entries of an object, by the numbers in their names."""
    return not pack.is_alone and pack.entries > each.entries and pack.first <= each.first and each.last <= pack.last


def _runs(objects: Sequence[EntryObject], *, most: int) -> Iterator[list[EntryObject]]:
    """Objects without a gap between their entries' numbers, so many at a time as a pack has entries at most."""
    run: list[EntryObject] = []
    for each in objects:
        if run and (each.first != run[-1].last + 1 or each.last - run[0].first >= most):
            yield run
            run = []
        run.append(each)
    if run:
        yield run
