"""The active legal holds, for jobs that remove records or files."""

from __future__ import annotations

from archiver.storage.journal import TableJournal
from catalog.model import TopicRow
from catalog.ranges.legal_holds import Hold
from catalog.registry import Registry


def holds_in_force(topic: TopicRow, journal: TableJournal, registry: Registry, *, recalls: bool) -> tuple[Hold, ...]:
    """Return active holds in journal or registry: a restored database may lack some.

    `recalls` stores these in the registry, before removals. Raises StorageError and RegistryError.
    """
    holds = {stored.id: stored for stored in registry.holds.load(topic)}
    for hold in journal.holds():
        if hold.id not in holds or (holds[hold.id].is_active and not hold.is_active):
            holds[hold.id] = hold
            if recalls:
                registry.holds.keep(topic, hold)
    return tuple(stored for stored in holds.values() if stored.is_active)
