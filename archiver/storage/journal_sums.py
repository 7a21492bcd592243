"""Sums up a journal's commits: old objects become one summary (ADR 55).

Safe to interrupt and to run concurrently: a summary is read back before its objects are removed.
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
from archiver.storage.journal_memory import JournalMemory
from catalog.iceberg.deletion_gate import OwnFolder
from catalog.journal_entries import JournaledCommit
from catalog.journal_summaries import CommitEntry, JournalSummary

SETTLED_SECONDS: Final = 3_600.0
"""Younger objects stay: their writer may be about to write or read them again."""

_LOG = logging.getLogger(__name__)
_COMMIT: Final = re.compile(r"commit-([0-7][0-9A-HJKMNP-TV-Z]{25})")


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSums:
    """`before` counts all objects.

    `kept` ones are summed up but can't be removed; `young` ones are too new.
    """

    before: int = 0
    summed: int = 0
    written: int = 0
    removed: int = 0
    kept: int = 0
    young: int = 0

    @property
    def after(self) -> int:
        return self.before + self.written - self.removed


@dataclass(frozen=True, slots=True, kw_only=True)
class SumLimits:
    """The fewest single objects and small summaries to sum up.

    A summary has at most `most_bytes`, unless one entry has more. After `refusals`, removals stop.
    """

    least: int = 256
    least_summaries: int = 16
    most_bytes: int = 8 << 20
    refusals: int = 16
    readers: int = READERS


@dataclass(slots=True, kw_only=True)
class JournalSummer:
    """Sums up objects older than `settled_seconds`. Nothing starts once `is_over`."""

    commits: JournalCommits
    memory: JournalMemory = field(default_factory=JournalMemory)
    limits: SumLimits = SumLimits()
    settled_seconds: float = SETTLED_SECONDS
    dry_run: bool = False
    is_over: Callable[[], bool] = lambda: False
    _summed: int = field(default=0, init=False)
    _written: int = field(default=0, init=False)
    _removed: int = field(default=0, init=False)
    _kept: int = field(default=0, init=False)

    def run(self) -> JournalSums:
        """Raises subclasses of StorageError, RegistryOutdated, and BadSegment for contradicting entries."""
        listed = self.commits.listed()
        before_ms = (time.time() - self.settled_seconds) * 1_000
        summaries = [item for item in listed if not item.is_alone]
        old = [item for item in listed if _is_settled(item, before_ms)]
        left = self._without_summed(old, summaries)
        alone = [item for item in left if item.is_alone]
        if len(alone) >= max(2, self.limits.least):
            self._sum_up(alone)
        small = [item for item in left if not item.is_alone and item.size * 2 <= self.limits.most_bytes]
        if len(small) >= self.limits.least_summaries:
            self._sum_up(small)
        return JournalSums(
            before=len(listed),
            summed=self._summed,
            written=self._written,
            removed=self._removed,
            kept=self._kept,
            young=sum(item.is_alone for item in listed) - sum(item.is_alone for item in old),
        )

    def _sum_up(self, objects: Sequence[CommitObject]) -> None:
        for group in in_parts(objects, most_bytes=self.limits.most_bytes):
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
        self._remove([item for item in group if item.object.path != path])

    def _entries(self, group: Sequence[CommitObject]) -> list[CommitEntry]:
        by_name: dict[str, tuple[str, CommitEntry, JournaledCommit]] = {}
        kept: list[CommitEntry] = []
        for item, entries in zip(group, self._read(group), strict=True):
            path = item.object.path
            for entry in entries:
                with readable(path):
                    commit = entry.commit
                first = by_name.setdefault(entry.name, (path, entry, commit))
                about = first[2].contradicts(commit) if first[1].data != entry.data else None
                if about is not None:
                    raise contradiction(entry.name, about, path, first[0])
            kept += entries
        return kept

    def _keep(self, summary: JournalSummary) -> str:
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
        """Remove summed objects, unless written again.

        In list order: readers that miss the first one list again.
        """
        refused: list[StorageError] = []
        tried = 0
        with ThreadPoolExecutor(self.limits.readers, thread_name_prefix="journal") as pool:
            readers = self.limits.readers
            for some in (group[:1], *(group[at : at + readers] for at in range(1, len(group), readers))):
                outcomes = list(pool.map(self._removal, some))
                tried += len(some)
                self._removed += outcomes.count(True)
                refused += [outcome for outcome in outcomes if isinstance(outcome, StorageError)]
                pass_point(JournalPoint.ENTRIES_REMOVED)
                if len(refused) > self.limits.refusals:
                    self.memory.refusing.add(self.commits.folder)
                    break
        self._kept += len(refused) + len(group) - tried
        if refused:
            self._say(refused[0])

    def _removal(self, each: CommitObject) -> bool | StorageError:
        try:
            return self.commits.objects.delete_unchanged(each.object, OwnFolder(self.commits.folder))
        except StorageUnavailable:
            raise
        except StorageError as error:
            return error

    def _without_summed(self, objects: Sequence[CommitObject], summaries: Sequence[CommitObject]) -> list[CommitObject]:
        """Also remove objects that a summary has."""
        inside: dict[str, CommitObject] = {}
        summed: set[str] = set()
        for summary in summaries:
            suspects = [item for item in objects if item.object.path not in summed and _may_have(summary, item)]
            inside |= {suspect.object.path: suspect for suspect in suspects}
            if suspects and self.commits.folder not in self.memory.refusing and not self.is_over():
                summed |= self._remove_summed(suspects, summary)
        if self.commits.folder in self.memory.refusing:
            self._kept += len(inside.keys() - summed)
            summed |= inside.keys()
        return [item for item in objects if item.object.path not in summed]

    def _remove_summed(self, suspects: Sequence[CommitObject], summary: CommitObject) -> set[str]:
        """Byte for byte; return their paths."""
        try:
            summarized = set(self.commits.entries(summary))
        except ObjectMissing:  # it was summed up again in the meantime
            return set()
        names = {entry.name for entry in summarized}
        summed: set[str] = set()
        suspects = [suspect for suspect in suspects if suspect.first in names]
        for some in in_parts(suspects, most_bytes=self.limits.most_bytes, most=self.limits.readers):
            try:
                contained = [
                    item for item, has in zip(some, self._read(some), strict=True) if summarized.issuperset(has)
                ]
            except ObjectMissing:
                continue
            summed |= {item.object.path for item in contained}
            if self.dry_run:
                self._removed += len(contained)
            else:
                self._remove(contained)
            if self.commits.folder in self.memory.refusing:
                break
        return summed

    def _read(self, group: Iterable[CommitObject]) -> list[tuple[CommitEntry, ...]]:
        with ThreadPoolExecutor(self.limits.readers, thread_name_prefix="journal") as pool:
            return list(pool.map(self.commits.entries, group))

    def _say(self, refused: StorageError) -> None:
        folder = self.commits.folder
        if folder not in self.memory.logged:
            self.memory.logged.add(folder)
            _LOG.warning(
                "%s: entries of the journal are summed up, and the store doesn't let the single objects go (%d by now)."
                " They do no harm, but the journal takes longer to list: %s",
                folder,
                self._kept,
                refused,
            )


def _may_have(summary: CommitObject, each: CommitObject) -> bool:
    is_within = summary.first <= each.first and each.last <= summary.last
    return is_within and (each.is_alone or each.size < summary.size)


def _is_settled(each: CommitObject, before_ms: float) -> bool:
    """False if the store gives no times."""
    modified_ms = each.object.modified_ms
    if modified_ms is None or modified_ms >= before_ms:
        return False
    match = _COMMIT.fullmatch(each.first)
    return not each.is_alone or (match is not None and ULID.from_str(match[1]).milliseconds < before_ms)
