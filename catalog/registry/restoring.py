"""Restore a topic's registry rows from table and journal (docs/stored-files.md).

Existing rows stay. Idempotent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from catalog.account.comparison import completed
from catalog.account.interval import Interval
from catalog.errors import RegistryError
from catalog.model import TopicRow, VersionRecord
from catalog.ranges.legal_holds import Hold
from catalog.ranges.replaced_files import ReplacedFile
from catalog.ranges.stored_ranges import StoredRange
from catalog.registry import (
    account_rows,
    erased_offsets,
    file_rows,
    files,
    first_offsets,
    history,
    holds,
    ledger_rows,
    replaced_rows,
    topics,
)
from catalog.registry.postgres import Connection
from schema_mapping.columns.ledger import LedgerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    schema_versions: int
    ranges: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """`first_offsets` are the journal's, `claimed_offsets` the table's. `erased` spans have their commit."""

    first_offsets: Mapping[int, int] = field(default_factory=dict)
    claimed_offsets: Mapping[int, int] = field(default_factory=dict)
    holds: Sequence[Hold] = ()
    erased: Sequence[tuple[str, tuple[int, int, int]]] = ()
    replaced: Sequence[ReplacedFile] = ()


def restore_retained(connection: Connection, topic: TopicRow, known: Retained) -> None:
    first_offsets.restore(connection, topic, known.first_offsets, known.claimed_offsets)
    for hold in known.holds:
        holds.keep(connection, topic, hold)
    replaced_rows.restore(connection, topic, known.replaced)
    for commit_id, span in known.erased:
        erased_offsets.add(connection, topic, [span], commit_id=commit_id)
    if known.erased:  # it is unknown whether the store still has some of these records
        erased_offsets.begin_erasure(connection, topic, f"rebuilt-{topic.id}", {"id": f"rebuilt-{topic.id}"})


def restore(
    connection: Connection,
    topic: TopicRow,
    *,
    state: LedgerState,
    records: Sequence[VersionRecord],
    ranges: Sequence[StoredRange],
    account: Sequence[Interval] = (),
) -> Restored:
    """Add the ledger up to `state`, ranges and account. Raises RegistryError if a version has another schema."""
    topics.lock(connection, topic)
    if not files.accepted_ends(connection, topic):
        files.note_rebuilt(connection, topic)
    before = ledger_rows.load(connection, topic)
    fingerprints = {version.version: version.fingerprint for version in before.versions}
    for version in state.versions:
        if fingerprints.get(version.version, version.fingerprint) != version.fingerprint:
            raise RegistryError(
                "the registry has another schema under this version: it belongs to another table. Rebuild into an empty"
                " database beside this one, and keep this one: only this one has the offsets of groups and the users of"
                " `archiver serve kafka`",
                topic=topic.topic,
                schema_version=version.version,
            )
    missing = [version.version for version in state.versions if version.version not in fingerprints]
    if missing:
        ledger_rows.store(connection, topic, before, state)
        for record in records:
            if record.version in missing:
                history.restore(connection, topic, record)
    added = file_rows.restore_committed(connection, topic, ranges)
    account_rows.restore(connection, topic, completed(account, ranges))
    return Restored(schema_versions=len(missing), ranges=added)
