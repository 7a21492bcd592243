"""Forget files whose objects are gone: deleted by hand or by a lifecycle rule of the bucket."""

from __future__ import annotations

from collections.abc import Container
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from archiver.errors import ObjectMissing
from archiver.storage.objects import ObjectStore
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import file_name
from catalog.registry import Registry

_LOOKS_AT_ONCE: Final = 16


def forget_ended(table: ArchiveTable, registry: Registry, *, seen: Container[str]) -> int:
    """Remove rows of files gone from the store, and for a month from the table; return their number.

    `seen` are listed names; other files are looked up. Files needed by a refill, hold or rewrite are kept. Raises
    StorageError.
    """
    ended = {
        path: claim for path, claim in registry.claims.ended_files(table.topic).items() if file_name(path) not in seen
    }
    if not ended:
        return 0
    file_states = registry.claims.file_states(table.topic, ended)
    objects = ObjectStore.of_table(table.iceberg)

    def is_gone(path: str) -> bool:
        try:
            objects.size(path)
        except ObjectMissing:
            return True
        return False

    asked = [path for path in ended if not file_states.needs(file_name(path))]
    with ThreadPoolExecutor(_LOOKS_AT_ONCE, thread_name_prefix="ended") as pool:
        gone = {path: ended[path] for path, missing in zip(asked, pool.map(is_gone, asked), strict=True) if missing}
    if gone:
        registry.claims.forget_deleted(table.topic, gone)
    return len(gone)
