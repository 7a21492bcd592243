"""Stored ledgers of named fields."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from catalog.journal_entries import JournaledSchema
from catalog.model import VersionRecord
from catalog.registry.ledger_rows import columns_of, entry_of
from schema_mapping import LedgerState, assign
from tests.support.schemas.fixed_width import FixedSchema

FIRST = assign(
    LedgerState(), value=FixedSchema.of(id="int", day="date", price="decimal(9, 2)", tag="fixed[3]", u="uuid")
)
FOUND = assign(FIRST.state, value=FixedSchema.of(id="long", price="decimal(12, 2)", größe="time"))


def test_the_journal_gives_it_back() -> None:
    newest = FOUND.state.versions[-1]
    kept = JournaledSchema(
        version=newest,
        record=VersionRecord(
            version=newest.version,
            created=datetime(2026, 1, 1, tzinfo=UTC),
            fingerprint=newest.fingerprint,
            changes=FOUND.changes,
        ),
        entries=FOUND.state.entries,
        last_id=FOUND.state.last_id,
    )
    assert FOUND.changes
    assert JournaledSchema.from_json(json.loads(json.dumps(kept.to_json()))) == kept


def test_the_registry_gives_it_back_by_numbers_and_texts() -> None:
    rows = [columns_of(entry) for entry in FOUND.state.entries]
    assert all(isinstance(step, int) for row in rows for step in row[1])  # type: ignore[attr-defined]
    assert tuple(entry_of(row) for row in rows) == FOUND.state.entries
