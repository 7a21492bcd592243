"""Delete orphans in batches, checked again right before. Safe to repeat.

The topic's row lock prevents staging and rewrites; losing it ends the deletion.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Container, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Final, Protocol

from archiver.errors import StorageError
from archiver.fault_points import RemovalPoint, pass_point
from archiver.storage.objects import ObjectStore
from archiver.upkeep.orphans.report import KeptFor, Orphan, OrphanFailed, OrphanObserver, OrphansRemoved, TopicOrphans
from catalog.errors import FilesShared
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.deletion_gate import Permit
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.registry.known_files import FileStates, Standstill

BATCH: Final = 64
WORKERS: Final = 16
TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTimes:
    """No deletion of a batch begins after `hold_seconds`, as other processes wait: the next batch gets the rest.

    During deletions the lock is checked every `check_seconds`, which also keeps the transaction from being idle.
    """

    hold_seconds: float = 20.0
    check_seconds: float = 2.0


LOCK_TIMES: Final = LockTimes()


class Checks(Protocol):
    @property
    def references(self) -> Container[str]:
        """As of the last `look`."""

    def look(self) -> ArchiveTable: ...

    @property
    def is_whole(self) -> bool:
        """True if the table lacked no row at the last `look`: then no refill needs a file."""

    def is_renewed(self, known: FileStates, name: str) -> bool: ...

    def is_promised(self, known: FileStates, orphan: Orphan) -> bool:
        """Whether an erasure promised it to readers of older snapshots."""

    def permit(self, orphan: Orphan) -> Permit:
        """Called right before the deletion, too."""


def remove_orphans(
    search: Checks,
    topic: TopicRow,
    report: TopicOrphans,
    *,
    registry: Registry,
    observer: OrphanObserver,
    is_over: Callable[[], bool] = lambda: False,
    times: LockTimes = LOCK_TIMES,
) -> None:
    """Delete the orphans in `report`, and record each fate.

    No batch starts after `is_over`. Raises TableError and RegistryError; the last StorageError if a whole batch failed;
    RegistryUnreachable if the lock is lost, then deletes nothing more.
    """
    left = deque(report.orphans)
    while left and not is_over():
        batch = [left.popleft() for _ in range(min(BATCH, len(left)))]
        search.look()  # before taking the lock, for which other processes wait
        files = {orphan.path: orphan.ulid for orphan in batch if orphan.ulid}
        with registry.claims.nothing_staged(topic, files) as still:
            table = search.look()
            needed = [orphan for orphan in batch if _is_needed(search, still.known, orphan)]
            report.needed_again += needed
            deletion = _Deletion(replace(ObjectStore.of_table(table.iceberg), attempts=1), still, search.permit, times)
            try:
                left.extendleft(deletion.run([orphan for orphan in batch if orphan not in needed]))
                pass_point(RemovalPoint.FILES_DELETED)
                still.forget_deleted({orphan.path: orphan.ulid for orphan in deletion.deleted if orphan.ulid})
            finally:
                report.deleted += deletion.deleted
                report.shared += deletion.shared
                report.kept[KeptFor.SHARED] += len(deletion.shared)
                report.failures |= deletion.errors
                for path, error in deletion.errors.items():
                    observer(OrphanFailed(topic=topic.topic, path=path, error=error))
                observer(OrphansRemoved(topic=topic.topic, orphans=len(needed) + deletion.count))
        if deletion.errors and not deletion.deleted:
            raise next(reversed(deletion.errors.values()))


def _is_needed(search: Checks, known: FileStates, each: Orphan) -> bool:
    is_needed = each.name in search.references or known.needs(each.name, is_whole=search.is_whole)
    return is_needed or search.is_renewed(known, each.name) or search.is_promised(known, each)


class _Deletion:
    def __init__(
        self, objects: ObjectStore, still: Standstill, permit: Callable[[Orphan], Permit], times: LockTimes
    ) -> None:
        self._objects = objects
        self._still = still
        self._permit = permit
        self._times = times
        self.deleted: list[Orphan] = []
        self.shared: list[Orphan] = []
        self.errors: dict[str, StorageError] = {}

    @property
    def count(self) -> int:
        return len(self.deleted) + len(self.shared)

    def run(self, going: Sequence[Orphan]) -> list[Orphan]:
        """Return the orphans for which time ran out."""
        deadline = time.monotonic() + self._times.hold_seconds
        waiting, tries = deque((orphan, 1) for orphan in going), 0
        with ThreadPoolExecutor(WORKERS, thread_name_prefix="orphans") as pool:
            while waiting and (not tries or time.monotonic() < deadline):
                some = [waiting.popleft() for _ in range(min(WORKERS, len(waiting)))]
                if some[0][1] > tries > 0:
                    time.sleep(_PAUSE_SECONDS * 2**tries)
                tries = some[0][1]
                waiting.extend(self._delete(some, pool))
        return [orphan for orphan, _ in waiting if orphan.path not in self.errors]

    def _delete(self, some: Sequence[tuple[Orphan, int]], pool: ThreadPoolExecutor) -> list[tuple[Orphan, int]]:
        self._still.check()
        futures = {
            pool.submit(self._objects.delete, orphan.path, self._permit(orphan)): (orphan, tries)
            for orphan, tries in some
        }
        try:
            while wait(futures, self._times.check_seconds).not_done:
                self._still.check()
        finally:
            outcomes = [(entry, future.exception()) for future, entry in futures.items()]
            self._note(outcomes)
        return [
            (orphan, tries + 1)
            for (orphan, tries), error in outcomes
            if isinstance(error, StorageError) and error.retryable and tries < TRIES
        ]

    def _note(self, outcomes: Sequence[tuple[tuple[Orphan, int], BaseException | None]]) -> None:
        """Record every outcome, then raise the first error that stops the work."""
        stops: BaseException | None = None
        for (orphan, _), error in outcomes:
            if error is None:
                self.deleted.append(orphan)
                self.errors.pop(orphan.path, None)
            elif isinstance(error, FilesShared):
                self.shared.append(orphan)
                self.errors.pop(orphan.path, None)
            elif isinstance(error, StorageError):
                self.errors[orphan.path] = error
            else:
                stops = stops or error
        if stops is not None:
            raise stops
