"""Orphans deleted, batch by batch, each looked at once more before it goes: an archiver may be at work meanwhile.

While a batch goes nothing is staged and no rewrite is begun (the topic's row lock). Whoever comes after finds the files
gone before a commit has them, since staged files are looked at first. Killed at any moment, the next run goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from archiver.errors import StorageError
from archiver.storage.objects import ObjectStore
from archiver.upkeep.orphan_report import Orphan, OrphanObserver, TopicOrphans
from archiver.upkeep.orphan_search import OrphanSearch
from catalog.model import TopicRow
from catalog.registry import Registry

BATCH: Final = 64
WORKERS: Final = 16


def remove_orphans(
    search: OrphanSearch, topic: TopicRow, report: TopicOrphans, *, registry: Registry, observer: OrphanObserver
) -> None:
    """Delete `report.orphans`, those that are still orphans; `report` has each one's fate.

    Raises the leaves of TableError and RegistryError; the last StorageError where a whole batch could not be deleted.
    """
    for start in range(0, len(report.orphans), BATCH):
        batch = report.orphans[start : start + BATCH]
        search.look()  # read here, not while others wait
        files = {each.path: each.ulid for each in batch if each.ulid}
        with registry.nothing_staged(topic, files) as claims:
            table = search.look()
            needed = [each for each in batch if each.name in search.references or claims.needs(each.name)]
            going = [each for each in batch if each not in needed]
            errors = _delete(going, ObjectStore.of_table(table.iceberg))
        report.needed_again += needed
        report.deleted += [each for each in going if each.path not in errors]
        for path, error in errors.items():
            report.failures[path] = error
            observer.failed(topic.topic, path, error)
        observer.removed(topic.topic, len(batch) - len(errors))
        if going and len(errors) == len(going):
            raise next(reversed(errors.values()))


def _delete(going: Sequence[Orphan], objects: ObjectStore) -> dict[str, StorageError]:
    def delete(each: Orphan) -> StorageError | None:
        try:
            objects.delete(each.path)
        except StorageError as error:
            return error
        return None

    with ThreadPoolExecutor(WORKERS, thread_name_prefix="orphans") as pool:
        outcomes = zip(going, pool.map(delete, going), strict=True)
        return {each.path: error for each, error in outcomes if error is not None}
