"""Commit planned rewrites in batches; plan again if other engines change the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from archiver.archive.table_files import TableFile
from archiver.rewrite.in_place import put_in_place
from archiver.rewrite.table_work import TableWork
from catalog.errors import CatalogUnreachable
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.rewrite_commit import Displaced, Rewritten
from catalog.ranges.rewrite import Rewrite

ROUNDS: Final = 5
"""How often work is planned again because other engines changed the table."""

Batch = TypeVar("Batch")
Done = TypeVar("Done")


def in_rounds(attempt: Callable[[], Done | None], *, table: str, may_be: str) -> Done:
    """Repeat while `attempt` returns None. Raises CatalogUnreachable (retryable) after the last."""
    for _ in range(ROUNDS):
        done = attempt()
        if done is not None:
            return done
    raise CatalogUnreachable(
        f"Other engines rewrite the table's files faster than {may_be}; run it again when they are done", table=table
    )


def commit_batches(
    work: TableWork,
    table: ArchiveTable,
    batches: Iterable[Batch],
    *,
    known: Mapping[str, TableFile],
    plan: Callable[[Batch, ArchiveTable], Rewrite | None],
    landed: Callable[[Batch, Rewrite], None],
    put: Callable[..., Rewritten | Displaced] = put_in_place,
) -> bool:
    """Commit batch by batch; return False at the first whose old files changed.

    `plan` makes a rewrite on the current table, or None. Raises like `put_in_place`.
    """
    for batch in batches:
        table = work.catalog.reload(table)
        rewrite = plan(batch, table)
        if rewrite is None:
            continue
        if not isinstance(put(work, table, rewrite, known), Rewritten):
            return False
        landed(batch, rewrite)
    return True
