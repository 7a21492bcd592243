"""A journal's commits: single objects or summaries (`journal_sums.py`). Duplicates count once."""

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
"""The most bytes of entries that are read at once, unless one object has more."""
_NAME: Final = r"commit-[^.]+?"
_MANY: Final = re.compile(rf"(?P<first>{_NAME})-(?P<last>[0-9A-Z]{{26}})(?:-(?P<bytes>\d+))?-(?P<hash>[0-9a-f]{{16}})")
_LOOKS: Final = 5

Told = Callable[[str, ContextError], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCommit:
    path: str
    name: str
    commit: JournaledCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitObject:
    object: ListedObject
    first: str
    last: str
    size: int
    is_alone: bool

    @classmethod
    def parse(cls, found: ListedObject) -> CommitObject:
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
    """Methods raise subclasses of StorageError, and RegistryOutdated."""

    folder: str
    objects: ObjectStore

    def read(self, *, unreadable: Told | None = None) -> Iterator[FoundCommit]:
        """Perhaps twice and out of order; reads a few objects at a time.

        Unreadable ones go to `unreadable`; without it, raises BadSegment.
        """

        def load(each: CommitObject) -> Sequence[CommitEntry] | ContextError:
            try:
                return self.entries(each)
            except ContextError as error:
                return error

        seen: set[str] = set()
        for left in reversed(range(_LOOKS)):
            listed = [candidate for candidate in self.listed() if candidate.object.path not in seen]
            missing: list[ObjectMissing] = []
            with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
                for some in in_parts(listed, most_bytes=_READ_BYTES, most=READERS):
                    for item, loaded in zip(some, pool.map(load, some), strict=True):
                        seen.add(item.object.path)
                        if isinstance(loaded, ObjectMissing):
                            missing.append(loaded)
                        else:
                            yield from _commits(item.object.path, loaded, unreadable)
            if not missing:
                return
            if not left:  # summed up while we read; the next list has the summary
                raise missing[-1]

    def entries(self, each: CommitObject) -> tuple[CommitEntry, ...]:
        """Raise BadSegment if the object is damaged or has changed."""
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
        """List until a list has all objects of the one before: a store lists page by page.

        Raises StorageUnavailable if lists keep changing.
        """
        before = {item.path for item in self._listed()}
        for _ in range(_LOOKS):
            listed = self._listed()
            if before.issubset(paths := {item.path for item in listed}):
                return [CommitObject.parse(item) for item in listed]
            before = paths
        raise StorageUnavailable(
            "the journal's commits are summed up faster than they can be listed: run it again", folder=self.folder
        )

    def _listed(self) -> list[ListedObject]:
        listed = [item for item in self.objects.list(self.folder) if item.name.startswith(COMMIT_PREFIX)]
        return sorted(listed, key=lambda entry: entry.name)


def agreeing(found: Iterable[FoundCommit], contradicted: Told | None = None) -> Iterator[tuple[str, JournaledCommit]]:
    """Check entries against earlier ones of their commit.

    Contradicting ones go to `contradicted`; without it, raises BadSegment.
    """
    by_name: dict[str, FoundCommit] = {}
    for entry in found:
        first = by_name.setdefault(entry.name, entry)
        about = None if first is entry else first.commit.contradicts(entry.commit)
        if about is not None:
            error = contradiction(entry.name, about, entry.path, first.path)
            if contradicted is None:
                raise error
            contradicted(entry.path, error)
            continue
        yield entry.name, entry.commit


def contradiction(name: str, about: str, path: str, other: str) -> BadSegment:
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
    """Split into runs within both bounds, or one larger object."""
    part: list[CommitObject] = []
    size = 0
    for item in objects:
        if part and (size + item.size > most_bytes or len(part) == most):
            yield part
            part, size = [], 0
        part.append(item)
        size += item.size
    if part:
        yield part


@contextmanager
def readable(path: str) -> Iterator[None]:
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
