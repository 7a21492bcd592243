"""The objects with a journal's commits: each commit has its own at first, and old ones are merged to keep them few.

A merged object is written and read back before the single objects are removed. An entry that is there twice counts
once. So a journal reads the same wherever a merge was interrupted, and while one runs.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ulid import ULID

from archiver.errors import BadSegment, ObjectMissing, StorageError, StorageUnavailable
from archiver.storage.objects import ListedObject, ObjectStore
from catalog.journal_entries import JournaledCommit, commits_in, merged
from schema_mapping.errors import ContextError

READERS: Final = 16
LEAST_MERGED: Final = 256
MOST_BYTES: Final = 1 << 20
SETTLED_SECONDS: Final = 3_600.0
"""Younger commits aren't merged: whoever wrote one may be about to write it again."""

_PREFIX: Final = "commit-"
_ALONE: Final = re.compile(r"commit-([0-7][0-9A-HJKMNP-TV-Z]{25})\.json")
_MERGED: Final = re.compile(r"commit-.+-([0-9a-f]{16})\.json")
_LOOKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalCommits:
    """The commits in a journal's folder. Methods raise subclasses of StorageError, and RegistryOutdated."""

    folder: str
    objects: ObjectStore

    def read(
        self, *, unreadable: Callable[[str, ContextError], None] | None = None
    ) -> Iterator[tuple[str, JournaledCommit]]:
        """Yield every commit with its name, reading a few objects at a time.

        A commit may come twice, and late ones may be out of order. Objects that can't be read are told to
        `unreadable`, if it is given, and left out.
        """
        load = self._commits if unreadable is None else partial(self._told, unreadable)
        seen: set[str] = set()
        for left in reversed(range(_LOOKS)):
            paths = [path for path in self._paths() if path not in seen]
            missing: list[ObjectMissing] = []
            with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
                for start in range(0, len(paths), READERS):
                    some = paths[start : start + READERS]
                    for path, found in zip(some, pool.map(load, some), strict=True):
                        seen.add(path)
                        if isinstance(found, ObjectMissing):
                            missing.append(found)
                        else:
                            yield from found
            if not missing:
                return
            if not left:  # merged while we read; the next list has the merged object
                raise missing[-1]

    def merge(self) -> int:
        """Merge old commits if there are many. Returns how many objects were merged."""
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
            # Named after its content, so that a merge of other commits in the same span can't replace it.
            span = f"{names[0]}-{names[-1].removeprefix(_PREFIX)}"
            path = f"{self.folder}/{span}-{hashlib.sha256(data).hexdigest()[:16]}.json"
            self.objects.write(path, data)
            if self.objects.read(path) != data:
                raise StorageError("the store gives back other bytes than were written; nothing was removed", file=path)
            # The first one is removed first: a reader whose list lacks others finds this one missing, and lists again.
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

    def _told(
        self, unreadable: Callable[[str, ContextError], None], path: str
    ) -> list[tuple[str, JournaledCommit]] | ObjectMissing:
        try:
            return self._parsed(path, self._json(path, is_checked=True))
        except ObjectMissing as error:
            return error
        except StorageUnavailable:
            raise
        except ContextError as error:
            unreadable(path, error)
            return []

    def _json(self, path: str, *, is_checked: bool = False) -> dict[str, Any]:
        data = self.objects.read(path)
        named = _MERGED.fullmatch(path.rpartition("/")[2]) if is_checked else None
        if named and hashlib.sha256(data).hexdigest()[:16] != named[1]:
            raise BadSegment(
                "an object of the journal isn't what its name says: it was changed; restore it from a backup",
                file=path,
            )
        with readable(path):
            value: dict[str, Any] = json.loads(data)
        return value

    def _parsed(self, path: str, value: dict[str, Any]) -> list[tuple[str, JournaledCommit]]:
        with readable(path):
            return list(commits_in(_name(path), value))

    def _paths(self) -> list[str]:
        """List the objects' paths, again and again until a list has all that the list before had.

        A store lists page by page. While a merge runs, a list may pass the merged object's place before that is
        written, and pass the single commits after they are removed. The list before still had those.
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
    """Turn errors from parsing an object of the journal into BadSegment."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise BadSegment(
            "an object of the journal can't be read: restore it from a backup, or remove it",
            file=path,
            cause=repr(error),
        ) from error


def _groups(alone: Sequence[ListedObject]) -> Iterator[list[ListedObject]]:
    """Split into groups of neighbours, so that no group's objects are too large together."""
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
    """A commit's name: the object's, without folder and ending."""
    return path.rpartition("/")[2].removesuffix(".json")
