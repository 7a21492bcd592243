"""Check that the table under a topic's name is the topic's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from catalog.errors import NotOurTable
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import TopicRow
from catalog.registry import Registry

if TYPE_CHECKING:
    from archiver.storage.journal import Journal


def identified(topic: TopicRow, registry: Registry, load: Callable[[], ArchiveTable | None]) -> ArchiveTable | None:
    """Raises RegistryBehind if another table has the topic's name."""
    try:
        return load()
    except NotOurTable as error:
        registry.topics.check_identity(topic, _uuid(error))
        raise


def may_adopt(topic: TopicRow, error: NotOurTable, registry: Registry, journal: Journal) -> bool:
    """If neither registry nor journal ever had a commit of the topic."""
    is_unmarked = "archived_topic" not in error.context
    return is_unmarked and registry.topics.check_identity(topic, _uuid(error)) and not journal.knows(topic.table)


def _uuid(error: NotOurTable) -> UUID | None:
    uuid = error.context.get("table_uuid")
    return UUID(str(uuid)) if uuid else None
