"""A topic's table while the catalog is away: as the registry remembers it from when it was last loaded."""

from __future__ import annotations

from collections.abc import Callable

from catalog.errors import CatalogUnreachable
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.tables import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry


def load_or_recall(
    topic: TopicRow,
    registry: Registry,
    catalog: TableCatalog,
    *,
    load: Callable[[], ArchiveTable | None] | None = None,
) -> ArchiveTable | None:
    """The table as it is, and remembered; else, where the catalog doesn't answer, as it was.

    `load` gives it, or raises, as it was loaded a moment ago. Raises CatalogUnreachable where it never was loaded, or
    its storage wants credentials that only the catalog has.
    """
    try:
        table = catalog.load(topic) if load is None else load()
    except CatalogUnreachable as error:
        known = registry.last_known.recall_table(topic)
        if known is None:
            raise CatalogUnreachable(
                f"{error.message} Only tables that were loaded before can be archived without it", **error.context
            ) from error
        return catalog.recall(topic, known)
    if table is not None:
        registry.last_known.remember_table(topic, catalog.known(table))
    return table
