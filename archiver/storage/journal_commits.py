"""The objects that hold a journal's commits: one each at first, old ones put together, so that there are never many.

A merged object is written and read back before what it holds is removed alone; an entry that is there twice counts
once. So a journal reads the same wherever a merge was cut short, and beside one that is under way.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from ulid import ULID

from archiver.errors import BadSegment, ObjectMissing, StorageError, StorageUnavailable
from archiver.storage.objects import ListedObject, ObjectStore
from catalog.journal import JournaledCommit, commits_in, merged

READERS: Final = 16
LEAST_MERGED: Final = 256
MOST_BYTES: Final = 1 << 20
SETTLED_SECONDS: Final = 3_600.0
"""Younger commits stay alone: who wrote one may be about to write it again."""

_PREFIX: Final = "commit-"
_ALONE: Final = re.compile(r"commit-([0-7][0-9A-HJKMNP-TV-Z]{25})\.json")
_LOOKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalCommits:
    """The commits in a journal's folder. Methods raise the leaves of StorageError, and RegistryOutdated."""

    folder: str
    objects: ObjectStore

    def read(self) -> Iterator[tuple[str, JournaledCommit]]:
        """Every commit with its name, a few objects at a time; one may come twice, and late ones out of order."""
        seen: set[str] = set()
        for left in reversed(range(_LOOKS)):
            paths = [path for path in self._paths() if path not in seen]
            missing: list[ObjectMissing] = []
            with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
                for start in range(0, len(paths), READERS):
                    some = paths[start : start + READERS]
                    for path, found in zip(some, pool.map(self._commits, some), strict=True):
                        seen.add(path)
                        if isinstance(found, ObjectMissing):
                            missing.append(found)
                        else:
                            yield from found
            if not missing:
                return
            if not left:  # merged while it was read: what it went into is among what is listed next
                raise missing[-1]

    def merge(self) -> int:
        """Put old commits together, where there are many; gives how many objects went."""
        before_ms = (time.time() - SETTLED_SECONDS) * 1_000
        alone = [each for each in self._listed() if _is_mergeable(each, before_ms)]
        if len(alone) < LEAST_MERGED:
            return 0
        groups = [group for group in _groups(alone) if len(group) > 1]
        for group in groups:
            self._merge(group)
        return sum(map(len, groups))

    def _merge(self, group: Sequence[ListedObject]) -> None:
        with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
            names = [_name(each.path) for each in group]
            entries = dict(zip(names, pool.map(self._entry, [each.path for each in group]), strict=True))
            data = merged(entries)
            # Named after its contents: another merge, of other commits in the same span, never takes its place.
            span = f"{names[0]}-{names[-1].removeprefix(_PREFIX)}"
            path = f"{self.folder}/{span}-{hashlib.sha256(data).hexdigest()[:16]}.json"
            self.objects.write(path, data)
            if self.objects.read(path) != data:
                raise StorageError("the store gives back other bytes than were written; nothing was removed", file=path)
            # The first one goes first: who lists meanwhile and misses others finds that one missing, and looks again.
            self.objects.delete(group[0].path)
            list(pool.map(self.objects.delete, [each.path for each in group[1:]]))

    def _entry(self, path: str) -> dict[str, Any]:
        value = self._json(path)
        self._parsed(path, value)
        return value

    def _commits(self, path: str) -> list[tuple[str, JournaledCommit]] | ObjectMissing:
        try:
            return self._parsed(path, self._json(path))
        except ObjectMissing as error:
            return error

    def _json(self, path: str) -> dict[str, Any]:
        data = self.objects.read(path)
        with readable(path):
            value: dict[str, Any] = json.loads(data)
        return value

    def _parsed(self, path: str, value: dict[str, Any]) -> list[tuple[str, JournaledCommit]]:
        with readable(path):
            return list(commits_in(_name(path), value))

    def _paths(self) -> list[str]:
        """The objects' paths, from a list that has all that the one before it had.

        A store lists page by page: beside a merge, a list may come past the merged object's place before that is
        written, and past the commits' own after they are removed. The list before shows those.
        """
        before = {each.path for each in self._listed()}
        for _ in range(_LOOKS):
            paths = [each.path for each in self._listed()]
            if before.issubset(paths):
                return paths
            before = set(paths)
        raise StorageUnavailable(
            "the journal's commits are put together faster than they can be listed: run it again", folder=self.folder
        )

    def _listed(self) -> list[ListedObject]:
        found = [each for each in self.objects.list(self.folder) if each.name.startswith(_PREFIX)]
        return sorted(found, key=lambda each: each.name)


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turn what parsing an object of the journal raises into BadSegment."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise BadSegment(
            "an object of the journal can't be read: restore it from a backup, or remove it",
            file=path,
            cause=repr(error),
        ) from error


def _groups(alone: Sequence[ListedObject]) -> Iterator[list[ListedObject]]:
    """Neighbours whose objects are not too large together."""
    group: list[ListedObject] = []
    size = 0
    for each in alone:
        if group and size + each.size > MOST_BYTES:
            yield group
            group, size = [], 0
        group.append(each)
        size += each.size
    yield group


def _is_mergeable(each: ListedObject, before_ms: float) -> bool:
    found = _ALONE.fullmatch(each.name)
    return found is not None and ULID.from_str(found[1]).milliseconds < before_ms


def _name(path: str) -> str:
    """What a commit is called, without folder and ending."""
    return path.rpartition("/")[2].removesuffix(".json")
