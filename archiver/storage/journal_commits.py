"""Reads the objects with a journal's commits: each commit has its own at first, and old ones are summed up.

An entry that is there twice counts once, and a summary is written before the single objects are removed. So a journal
reads the same before, after and wherever the summing up (`journal_sums.py`) was interrupted, and while it goes on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from archiver.errors import BadSegment, ObjectMissing, StorageUnavailable
from archiver.storage.objects import ListedObject, ObjectStore
from catalog.journal_entries import JournaledCommit
from catalog.journal_summaries import CommitEntry, entries_in
from schema_mapping.errors import ContextError

READERS: Final = 16
COMMIT_PREFIX: Final = "commit-"

_READ_BYTES: Final = 16 << 20
"""So many bytes of entries are read at once, if no single object has more."""
_NAME: Final = r"commit-[^.]+?"
_MANY: Final = re.compile(rf"(?P<first>{_NAME})-(?P<last>[0-9A-Z]{{26}})(?:-(?P<bytes>\d+))?-(?P<hash>[0-9a-f]{{16}})")
_LOOKS: Final = 5

Told = Callable[[str, ContextError], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCommit:
    """An entry of a commit, and the object that it is in."""

    path: str
    name: str
    commit: JournaledCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitObject:
    """An object with commits, by its name: from which to which they are, and how many bytes their entries have."""

    object: ListedObject
    first: str
    last: str
    size: int
    is_alone: bool

    @classmethod
    def of(cls, found: ListedObject) -> CommitObject:
        """What the name of an object says."""
        name = found.name.removesuffix(".json")
        many = _MANY.fullmatch(name)
        if many is None:
            alone = name.partition(".")[0]
            return cls(object=found, first=alone, last=alone, size=found.size, is_alone=True)
        size = found.size if many["bytes"] is None else int(many["bytes"])
        last = f"{COMMIT_PREFIX}{many['last']}"
        return cls(object=found, first=many["first"], last=last, size=size, is_alone=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalCommits:
    """The commits in a journal's folder. Methods raise subclasses of StorageError, and RegistryOutdated."""

    folder: str
    objects: ObjectStore

    def read(self, *, unreadable: Told | None = None) -> Iterator[FoundCommit]:
        """Yield every commit, reading a few objects at a time.

        A commit may come twice, and late ones may be out of order. Objects that can't be read are told to
        `unreadable`, if it is given, and left out.
        """

        def load(each: CommitObject) -> Sequence[CommitEntry] | ContextError:
            try:
                return self.entries(each)
            except ContextError as error:
                return error

        seen: set[str] = set()
        for left in reversed(range(_LOOKS)):
            listed = [each for each in self.listed() if each.object.path not in seen]
            missing: list[ObjectMissing] = []
            with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
                for some in in_parts(listed, most_bytes=_READ_BYTES, most=READERS):
                    for each, found in zip(some, pool.map(load, some), strict=True):
                        seen.add(each.object.path)
                        if isinstance(found, ObjectMissing):
                            missing.append(found)
                        else:
                            yield from _commits(each.object.path, found, unreadable)
            if not missing:
                return
            if not left:  # summed up while we read; the next list has the summary
                raise missing[-1]

    def entries(self, each: CommitObject) -> tuple[CommitEntry, ...]:
        """The entries of one object. BadSegment where it is damaged, or was changed since it was written."""
        path = each.object.path
        data = self.objects.read(path)
        named = _MANY.fullmatch(each.object.name.removesuffix(".json"))
        if named and hashlib.sha256(data).hexdigest()[:16] != named["hash"]:
            raise BadSegment(
                "an object of the journal isn't what its name says: it was changed; restore it from a backup",
                file=path,
            )
        with readable(path):
            return tuple(entries_in(each.first, data))

    def listed(self) -> list[CommitObject]:
        """List the objects, again and again until a list has all that the list before had.

        A store lists page by page. While commits are summed up, a list may pass the summary's place before that is
        written, and pass the single commits after they are removed. The list before still had those.
        """
        before = {each.path for each in self._listed()}
        for _ in range(_LOOKS):
            found = self._listed()
            if before.issubset(paths := {each.path for each in found}):
                return [CommitObject.of(each) for each in found]
            before = paths
        raise StorageUnavailable(
            "the journal's commits are summed up faster than they can be listed: run it again", folder=self.folder
        )

    def _listed(self) -> list[ListedObject]:
        found = [each for each in self.objects.list(self.folder) if each.name.startswith(COMMIT_PREFIX)]
        return sorted(found, key=lambda each: each.name)


def agreeing(found: Iterable[FoundCommit], contradicted: Told | None = None) -> Iterator[tuple[str, JournaledCommit]]:
    """Yield each entry with its commit's name, and hold it against those of the same commit.

    Of two that contradict each other, the later is told to `contradicted` and left out; without that it is raised as
    BadSegment, which names both objects.
    """
    known: dict[str, FoundCommit] = {}
    for each in found:
        other = known.setdefault(each.name, each)
        about = None if other is each else other.commit.contradicts(each.commit)
        if about is not None:
            error = contradiction(each.name, about, each.path, other.path)
            if contradicted is None:
                raise error
            contradicted(each.path, error)
            continue
        yield each.name, each.commit


def contradiction(name: str, about: str, path: str, other: str) -> BadSegment:
    """The error of two entries of a commit that can't both be right."""
    return BadSegment(
        "the journal has two entries of one commit that contradict each other: somebody changed one of them. Restore it"
        " from a backup or the store's versions. `archiver verify` says which of the two the records agree with",
        commit=name,
        about=about,
        file=path,
        other=other,
    )


def in_parts(
    objects: Iterable[CommitObject], *, most_bytes: int, most: int | None = None
) -> Iterator[list[CommitObject]]:
    """Split into neighbours that have no more bytes together, and are no more, if none alone has more."""
    part: list[CommitObject] = []
    size = 0
    for each in objects:
        if part and (size + each.size > most_bytes or len(part) == most):
            yield part
            part, size = [], 0
        part.append(each)
        size += each.size
    if part:
        yield part


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turn errors from parsing an object of the journal into BadSegment."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise BadSegment(
            "an object of the journal can't be read: restore it from a backup or the store's versions. Keep it until"
            " then: it may be all that is known of its commits",
            file=path,
            cause=repr(error),
        ) from error


def _commits(path: str, found: Sequence[CommitEntry] | ContextError, unreadable: Told | None) -> Iterator[FoundCommit]:
    """The commits of an object. What is wrong is raised, or told."""
    try:
        if isinstance(found, ContextError):
            raise found
        for entry in found:
            with readable(path):
                commit = entry.commit
            yield FoundCommit(path=path, name=entry.name, commit=commit)
    except StorageUnavailable:
        raise
    except ContextError as error:
        if unreadable is None:
            raise
        unreadable(path, error)
