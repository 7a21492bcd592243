"""Restore a topic's part of the registry from its table and journal (docs/operations.md).

What the registry already knows stays. Functions take a connection inside a transaction. They are safe to call again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.errors import RegistryError
from catalog.model import TopicRow, VersionRecord
from catalog.ranges.stored_ranges import StoredRange
from catalog.registry import file_rows, history, ledger, topics
from catalog.registry.postgres import Connection
from schema_mapping.columns.ledger import LedgerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """How many schema versions and ranges were missing and were added."""

    schema_versions: int
    ranges: int


def restore(
    connection: Connection,
    topic: TopicRow,
    *,
    state: LedgerState,
    records: Sequence[VersionRecord],
    ranges: Sequence[StoredRange],
) -> Restored:
    """Add what is missing: the ledger up to `state`, and ranges that are in the table.

    RegistryError where the registry has another schema under one of the versions.
    """
    topics.lock(connection, topic)
    before = ledger.load(connection, topic)
    known = {each.version: each.fingerprint for each in before.versions}
    for each in state.versions:
        if known.get(each.version, each.fingerprint) != each.fingerprint:
            raise RegistryError(
                "the registry has another schema under this version: it belongs to another table. Rebuild into an empty"
                " database",
                topic=topic.topic,
                schema_version=each.version,
            )
    missing = [each.version for each in state.versions if each.version not in known]
    if missing:
        ledger.store(connection, topic, before, state)
        for record in records:
            if record.version in missing:
                history.restore(connection, topic, record)
    added = file_rows.restore_committed(connection, topic, ranges)
    return Restored(schema_versions=len(missing), ranges=added)
