"""A trail's folder: single entries, packs of old ones, and checkpoints (docs/audit.md)."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from archiver.audit.entry import hash_of
from archiver.errors import ObjectMissing, StorageError, StorageUnavailable
from archiver.fault_points import AuditPoint, pass_point
from archiver.storage.objects import ListedObject, ObjectStore
from catalog.iceberg.deletion_gate import OwnFolder

PACK_SECONDS: Final = 3_600.0
"""Younger packs stay: a reader may have listed the folder before they were written, and need what they replaced."""
READERS: Final = 16

_LOG = logging.getLogger(__name__)

_ENTRY: Final = re.compile(r"entry-(?P<first>\d{10,})\.json")
_PACK: Final = re.compile(r"entries-(?P<first>\d{10,})-(?P<last>\d{10,})-[0-9a-f]{16}\.jsonl")
_CHECKPOINT: Final = re.compile(r"checkpoint-(?P<entries>\d{10,})-\d{8}T\d{12}Z\.json")
_LOOKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryObject:
    path: str
    first: int
    last: int
    modified_ms: int | None = None

    @property
    def entries(self) -> int:
        return self.last - self.first + 1

    @property
    def is_alone(self) -> bool:
        return self.path.endswith(".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLine:
    path: str
    place: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    entries: tuple[EntryObject, ...]
    checkpoints: tuple[str, ...]

    @property
    def last(self) -> int:
        return max((entry.last for entry in self.entries), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackLimits:
    """For runs of single entries (`least`, `most`), and of packs."""

    least: int = 256
    most: int = 2_048
    least_packs: int = 16
    most_together: int = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailFolder:
    """Methods raise subclasses of StorageError."""

    path: str
    objects: ObjectStore
    limits: PackLimits = PackLimits()
    logged: set[str] = field(default_factory=set, compare=False)
    """Folders of which it was logged that their store refuses removals."""

    def listed(self) -> Listed:
        """List the folder until a list has all entries of the previous one: a paged list may miss packed entries.

        Raises StorageUnavailable if lists keep changing.
        """
        objects = self.objects.list(self.path)
        for _ in range(_LOOKS):
            before, objects = objects, self.objects.list(self.path)
            if {item.path for item in before} <= {item.path for item in objects}:
                break
        else:
            raise StorageUnavailable(
                "entries are packed faster than they can be listed: run it again", folder=self.path
            )
        return Listed(entries=_entry_objects(objects), checkpoints=_checkpoints(objects))

    def write(self, seq: int, line: str) -> None:
        """Idempotent. Raises StorageError if another entry has the number."""
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
        self.objects.write(f"{self.path}/{name}", data)

    def lines(self, *, first: int = 1) -> Iterator[StoredLine]:
        """From the object that may have `first`. A packed entry may come twice.

        Damaged objects yield their remaining lines. Raises StorageUnavailable if lists keep changing.
        """
        seen: set[str] = set()
        for left in reversed(range(_LOOKS)):
            left_over = [entry for entry in self.listed().entries if entry.last >= first and entry.path not in seen]
            missing: list[ObjectMissing] = []
            with ThreadPoolExecutor(READERS, thread_name_prefix="audit") as pool:
                for start in range(0, len(left_over), READERS):
                    some = left_over[start : start + READERS]
                    for source, loaded in zip(some, pool.map(self._read, (item.path for item in some)), strict=True):
                        if isinstance(loaded, ObjectMissing):
                            missing.append(loaded)
                            continue
                        seen.add(source.path)
                        for number, line in enumerate(loaded, source.first):
                            yield StoredLine(path=source.path, place=number, data=line)
            if not missing:
                return
            if not left:  # packed while we read; the next list has the pack
                raise StorageUnavailable(
                    "entries are packed faster than they can be read: run it again", cause=missing[-1]
                )

    def checkpoints(self) -> Iterator[tuple[str, bytes]]:
        for path in self.listed().checkpoints:
            yield path, self.objects.read(path)

    def pack(self, *, through: int) -> int:
        """Pack entries up to `through`: writers may still rewrite later ones."""
        listed, limits = self.listed().entries, self.limits
        before_ms = (time.time() - PACK_SECONDS) * 1_000
        packed = {item.path for pack in listed for item in self._remove_packed(pack, listed)}
        left = [item for item in listed if item.path not in packed]
        alone = [item for item in left if item.is_alone and item.last <= through]
        small = [item for item in left if item.modified_ms is not None and item.modified_ms < before_ms]
        small = [item for item in small if not item.is_alone and item.entries * 2 <= limits.most_together]
        runs = [run for run in _runs(alone, most=limits.most) if len(run) >= limits.least]
        runs += [run for run in _runs(small, most=limits.most_together) if len(run) >= limits.least_packs]
        for run in runs:
            self._pack(run)
        return sum(map(len, runs))

    def _pack(self, run: Sequence[EntryObject]) -> None:
        with ThreadPoolExecutor(READERS, thread_name_prefix="audit") as pool:
            lines = [line for loaded in pool.map(self._whole, run) for line in loaded]
            data = b"".join(line + b"\n" for line in lines)
            name = f"entries-{run[0].first:010d}-{run[-1].last:010d}-{hash_of(data)[:16]}.jsonl"
            self.objects.write(f"{self.path}/{name}", data)
            pass_point(AuditPoint.PACK_WRITTEN)
            if self.objects.read(f"{self.path}/{name}") != data:
                raise StorageError(
                    "the store gives back other bytes than were written; nothing was removed",
                    file=f"{self.path}/{name}",
                )
            refused = [error for error in pool.map(self._removed, run) if error is not None]
        if refused:
            self._say(refused[0])

    def _remove_packed(self, pack: EntryObject, listed: Sequence[EntryObject]) -> Sequence[EntryObject]:
        """Remove objects that a pack has: packing was interrupted or refused."""
        inside = [item for item in listed if _has(pack, item)]
        if inside and self.path not in self.logged:
            lines = self._whole(pack)
            for item in inside:
                if self._whole(item) == lines[item.first - pack.first : item.last - pack.first + 1]:
                    refused = self._removed(item)
                    if refused is not None:
                        self._say(refused)
                        break
        return inside

    def _say(self, refused: StorageError) -> None:
        if self.path not in self.logged:
            self.logged.add(self.path)
            _LOG.warning(
                "%s: entries of the audit trail are packed, and the store doesn't let their own objects go. They do no"
                " harm: %s",
                self.path,
                refused,
            )

    def _whole(self, each: EntryObject) -> list[bytes]:
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
    """Names sort by entries, then by time."""
    return f"checkpoint-{entries:010d}-{re.sub(r'[-:.]', '', time)}.json"


def _entry_objects(found: Sequence[ListedObject]) -> tuple[EntryObject, ...]:
    objects = []
    for item in found:
        if match := _ENTRY.fullmatch(item.name):
            first, last = int(match["first"]), int(match["first"])
        elif match := _PACK.fullmatch(item.name):
            first, last = int(match["first"]), int(match["last"])
        else:
            continue
        objects.append(EntryObject(path=item.path, first=first, last=last, modified_ms=item.modified_ms))
    return tuple(sorted(objects, key=lambda entry: (entry.first, entry.last)))


def _checkpoints(found: Sequence[ListedObject]) -> tuple[str, ...]:
    return tuple(
        item.path for item in sorted(found, key=lambda listed: listed.name) if _CHECKPOINT.fullmatch(item.name)
    )


def _has(pack: EntryObject, each: EntryObject) -> bool:
    return not pack.is_alone and pack.entries > each.entries and pack.first <= each.first and each.last <= pack.last


def _runs(objects: Sequence[EntryObject], *, most: int) -> Iterator[list[EntryObject]]:
    run: list[EntryObject] = []
    for item in objects:
        if run and (item.first != run[-1].last + 1 or item.last - run[0].first >= most):
            yield run
            run = []
        run.append(item)
    if run:
        yield run
