"""The legal holds that are in force, for every job that removes records or files."""

from __future__ import annotations

from archiver.storage.journal import TableJournal
from catalog.model import TopicRow
from catalog.ranges.legal_holds import Hold
from catalog.registry import Registry


def holds_in_force(topic: TopicRow, journal: TableJournal, registry: Registry, *, recalls: bool) -> tuple[Hold, ...]:
    """The active holds that journal or registry know: a database that was restored may have forgotten some.

    With `recalls` the registry is told of these. Do that before records are removed: it refuses what holds are on.
    Raises the leaves of StorageError and RegistryError.
    """
    known = {each.id: each for each in registry.holds.load(topic)}
    for hold in journal.holds():
        if hold.id not in known or (known[hold.id].is_active and not hold.is_active):
            known[hold.id] = hold
            if recalls:
                registry.holds.keep(topic, hold)
    return tuple(each for each in known.values() if each.is_active)
