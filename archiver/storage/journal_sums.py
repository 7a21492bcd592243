"""Sums up a journal's commits: old entries that have an object each become one object with all of them (ADR 55).

A summary is written, read back and compared before the objects that it sums up are removed, and it has their very
bytes. So the journal says the same wherever that is interrupted, and however many do it at once. Small summaries are
summed up again. What the store doesn't let go stays beside the summary, and does no harm.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from ulid import ULID

from archiver.errors import ObjectMissing, StorageError, StorageUnavailable
from archiver.fault_points import JournalPoint, pass_point
from archiver.storage.journal_commits import (
    COMMIT_PREFIX,
    READERS,
    CommitObject,
    JournalCommits,
    contradiction,
    in_parts,
    readable,
)
from catalog.iceberg.deletion_gate import OwnFolder
from catalog.journal_entries import JournaledCommit
from catalog.journal_summaries import CommitEntry, JournalSummary

LEAST_SUMMED: Final = 256
"""So many single objects are summed up. With fewer, their summary would have to be summed up again soon."""
LEAST_SUMMARIES: Final = 16
"""So many small summaries are summed up again."""
MOST_BYTES: Final = 8 << 20
"""The entries of a summary have no more bytes, if none alone has more."""
SETTLED_SECONDS: Final = 3_600.0
"""Younger objects stay as they are: whoever wrote one may be about to write it again, or to read it."""
REFUSALS: Final = 16
"""After so many refused removals no other is tried."""

_LOG = logging.getLogger(__name__)
_COMMIT: Final = re.compile(r"commit-([0-7][0-9A-HJKMNP-TV-Z]{25})")
_REFUSING: Final[set[str]] = set()
"""The folders in which this process doesn't try any more to remove what is summed up: the store doesn't let it go."""
_SAID: Final[set[str]] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSums:
    """What was done, or would be: so many objects were `summed` up in `written` summaries, and so many `removed`.

    `kept` are summed up, and the store doesn't let them go. `young` stand alone and wait. `before` are the objects that
    there were.
    """

    before: int = 0
    summed: int = 0
    written: int = 0
    removed: int = 0
    kept: int = 0
    young: int = 0

    @property
    def after(self) -> int:
        """How many objects there are then."""
        return self.before + self.written - self.removed


@dataclass(slots=True, kw_only=True)
class JournalSummer:
    """One summing up of a journal's commits.

    Only objects that are older than `settled_seconds` are touched. At least `least` single ones are summed up. Nothing
    is begun once `is_over` says so.
    """

    commits: JournalCommits
    least: int = LEAST_SUMMED
    settled_seconds: float = SETTLED_SECONDS
    dry_run: bool = False
    is_over: Callable[[], bool] = lambda: False
    _summed: int = field(default=0, init=False)
    _written: int = field(default=0, init=False)
    _removed: int = field(default=0, init=False)
    _kept: int = field(default=0, init=False)

    def run(self) -> JournalSums:
        """Sum up what is old, if there is enough. Raises subclasses of StorageError, and RegistryOutdated.

        BadSegment where entries contradict each other: then these stay as they are.
        """
        listed = self.commits.listed()
        before_ms = (time.time() - self.settled_seconds) * 1_000
        summaries = [each for each in listed if not each.is_alone]
        old = [each for each in listed if _is_settled(each, before_ms)]
        left = self._without_summed(old, summaries)
        alone = [each for each in left if each.is_alone]
        if len(alone) >= max(2, self.least):
            self._sum_up(alone)
        small = [each for each in left if not each.is_alone and each.size * 2 <= MOST_BYTES]
        if len(small) >= LEAST_SUMMARIES:
            self._sum_up(small)
        return JournalSums(
            before=len(listed),
            summed=self._summed,
            written=self._written,
            removed=self._removed,
            kept=self._kept,
            young=sum(each.is_alone for each in listed) - sum(each.is_alone for each in old),
        )

    def _sum_up(self, objects: Sequence[CommitObject]) -> None:
        for group in in_parts(objects, most_bytes=MOST_BYTES):
            if len(group) == 1 or self.is_over():
                continue
            if self.dry_run:
                self._summed += len(group)
                self._written += 1
                self._removed += len(group)
            else:
                self._sum(group)

    def _sum(self, group: Sequence[CommitObject]) -> None:
        try:
            entries = self._entries(group)
        except ObjectMissing:  # somebody else sums them up
            return
        path = self._keep(JournalSummary.of(entries))
        self._summed += len(group)
        self._remove([each for each in group if each.object.path != path])

    def _entries(self, group: Sequence[CommitObject]) -> list[CommitEntry]:
        """The entries of these objects, of which each can be read and none contradicts another."""
        known: dict[str, tuple[str, CommitEntry, JournaledCommit]] = {}
        found: list[CommitEntry] = []
        for each, entries in zip(group, self._read(group), strict=True):
            path = each.object.path
            for entry in entries:
                with readable(path):
                    commit = entry.commit
                other = known.setdefault(entry.name, (path, entry, commit))
                about = other[2].contradicts(commit) if other[1].data != entry.data else None
                if about is not None:
                    raise contradiction(entry.name, about, path, other[0])
            found += entries
        return found

    def _keep(self, summary: JournalSummary) -> str:
        """Write the summary, and make sure that the store has it."""
        data = summary.to_bytes()
        first, last = summary.entries[0].name, summary.entries[-1].name.removeprefix(COMMIT_PREFIX)
        # Named after its content, so that a summary of other commits in the same span can't replace it.
        name = f"{first}-{last}-{summary.size}-{hashlib.sha256(data).hexdigest()[:16]}.json"
        path, objects = f"{self.commits.folder}/{name}", self.commits.objects
        if not objects.exists(path) or objects.read(path) != data:
            objects.write(path, data)
            self._written += 1
        pass_point(JournalPoint.SUMMARY_WRITTEN)
        if objects.read(path) != data:
            raise StorageError("the store gives back other bytes than were written; nothing was removed", file=path)
        pass_point(JournalPoint.SUMMARY_COMPARED)
        return path

    def _remove(self, group: Sequence[CommitObject]) -> None:
        """Remove objects that are summed up, unless they were written again meanwhile.

        The first one is removed first: a reader whose list lacks others finds this one missing, and lists again.
        """
        refused: list[StorageError] = []
        tried = 0
        with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
            for some in (group[:1], *(group[at : at + READERS] for at in range(1, len(group), READERS))):
                outcomes = list(pool.map(self._removal, some))
                tried += len(some)
                self._removed += outcomes.count(True)
                refused += [each for each in outcomes if isinstance(each, StorageError)]
                pass_point(JournalPoint.ENTRIES_REMOVED)
                if len(refused) > REFUSALS:
                    _REFUSING.add(self.commits.folder)
                    break
        self._kept += len(refused) + len(group) - tried
        if refused:
            self._say(refused[0])

    def _removal(self, each: CommitObject) -> bool | StorageError:
        """Whether the object was removed; the error where the store doesn't let it go."""
        try:
            return self.commits.objects.delete_unchanged(each.object, OwnFolder(self.commits.folder))
        except StorageUnavailable:
            raise
        except StorageError as error:
            return error

    def _without_summed(self, objects: Sequence[CommitObject], summaries: Sequence[CommitObject]) -> list[CommitObject]:
        """Those that no summary has. The others are removed: a summing up was cut short, or the store refused that."""
        inside: dict[str, CommitObject] = {}
        summed: set[str] = set()
        for summary in summaries:
            suspects = [each for each in objects if each.object.path not in summed and _may_have(summary, each)]
            inside |= {each.object.path: each for each in suspects}
            if suspects and self.commits.folder not in _REFUSING and not self.is_over():
                summed |= self._remove_summed(suspects, summary)
        if self.commits.folder in _REFUSING:
            self._kept += len(inside.keys() - summed)
            summed |= inside.keys()
        return [each for each in objects if each.object.path not in summed]

    def _remove_summed(self, suspects: Sequence[CommitObject], summary: CommitObject) -> set[str]:
        """Remove those whose entries the summary has, byte for byte. Return their paths."""
        try:
            known = set(self.commits.entries(summary))
        except ObjectMissing:  # it was summed up again meanwhile
            return set()
        names = {each.name for each in known}
        summed: set[str] = set()
        for some in in_parts((each for each in suspects if each.first in names), most_bytes=MOST_BYTES, most=READERS):
            try:
                found = [each for each, has in zip(some, self._read(some), strict=True) if known.issuperset(has)]
            except ObjectMissing:
                continue
            summed |= {each.object.path for each in found}
            if self.dry_run:
                self._removed += len(found)
            else:
                self._remove(found)
            if self.commits.folder in _REFUSING:
                break
        return summed

    def _read(self, group: Iterable[CommitObject]) -> list[tuple[CommitEntry, ...]]:
        with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
            return list(pool.map(self.commits.entries, group))

    def _say(self, refused: StorageError) -> None:
        """Say once that the store keeps what is summed up."""
        folder = self.commits.folder
        if folder not in _SAID:
            _SAID.add(folder)
            _LOG.warning(
                "%s: entries of the journal are summed up, and the store doesn't let the single objects go (%d by now)."
                " They do no harm, but the journal takes longer to list: %s",
                folder,
                self._kept,
                refused,
            )


def _may_have(summary: CommitObject, each: CommitObject) -> bool:
    """Whether all entries of an object may be in a summary, as far as the names say."""
    is_within = summary.first <= each.first and each.last <= summary.last
    return is_within and (each.is_alone or each.size < summary.size)


def _is_settled(each: CommitObject, before_ms: float) -> bool:
    """Whether an object was written before this time, and a single commit was made before it.

    Of a store that doesn't say when, nothing is taken for old.
    """
    modified_ms = each.object.modified_ms
    if modified_ms is None or modified_ms >= before_ms:
        return False
    found = _COMMIT.fullmatch(each.first)
    return not each.is_alone or (found is not None and ULID.from_str(found[1]).milliseconds < before_ms)
