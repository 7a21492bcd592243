"""Which schema version records get."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from archiver.topics.schema_choice import OnSchemaChange, SchemaChoice, choose_version
from catalog.registry.schema_changes import StoredChange
from schema_mapping import assign
from schema_mapping.columns.ledger import LedgerState
from schema_mapping.field_ids import Assignment
from tests.support.schemas.proto_text import fields

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = "int64 id = 1; string name = 2;"
ADDED = FIRST + " string more = 3;"
WIDENED = "int64 id = 1; string name = 2; int64 total = 4;"
BREAKING = {
    "renamed": "int64 number = 1; string name = 2;",
    "removed": "int64 id = 1;",
    "replaced": "string id = 1; string name = 2;",
}


def ledger(*bodies: str) -> LedgerState:
    state = LedgerState()
    for body in bodies:
        state = assign(state, value=fields(body)).state
    return state


def choose(
    state: LedgerState,
    body: str,
    *,
    policy: OnSchemaChange = "compatible",
    has_records: bool = True,
    approved: tuple[StoredChange, ...] = (),
) -> tuple[SchemaChoice, Assignment]:
    candidate = assign(state, value=fields(body))
    return choose_version(state, candidate, policy=policy, has_records=has_records, approved=approved), candidate


def approval(candidate: Assignment, base_version: int, *, given: bool = True) -> StoredChange:
    return StoredChange(
        base_version=base_version,
        fingerprint=candidate.fingerprint,
        changes=(),
        waits_since=NOW,
        approved_at=NOW if given else None,
    )


@pytest.mark.parametrize("policy", ["apply", "compatible", "halt"])
def test_compatible_changes_need_no_approval(policy: OnSchemaChange) -> None:
    choice, candidate = choose(ledger(FIRST), ADDED, policy=policy)
    assert choice.next_version is candidate
    assert choice.waiting is None
    assert choice.in_force.version == 1


@pytest.mark.parametrize("kind", BREAKING)
def test_breaking_changes_wait(kind: str) -> None:
    state = ledger(FIRST)
    for policy in ("compatible", "halt"):
        choice, candidate = choose(state, BREAKING[kind], policy=policy)
        assert choice.next_version is None
        assert choice.waiting is not None
        assert choice.waiting.candidate is candidate
        assert [str(change.kind) for change in choice.waiting.changes] == [kind]
        assert (choice.in_force.version, choice.in_force.state) == (1, state)
    assert choose(state, BREAKING[kind], policy="apply")[0].next_version is not None


def test_table_without_records_takes_any_change() -> None:
    assert choose(ledger(FIRST), BREAKING["replaced"], has_records=False)[0].next_version is not None


def test_approval_counts_for_one_schema_and_base() -> None:
    state = ledger(FIRST)
    _, candidate = choose(state, BREAKING["replaced"])
    _, renamed = choose(state, BREAKING["renamed"])
    approved = (approval(candidate, 1),)
    assert choose(state, BREAKING["replaced"], approved=approved)[0].next_version is not None
    assert choose(state, BREAKING["replaced"], approved=(approval(candidate, 1, given=False),))[0].waiting is not None
    assert choose(state, BREAKING["replaced"], approved=(approval(renamed, 1),))[0].waiting is not None
    later = ledger(FIRST, ADDED)
    assert choose(later, BREAKING["replaced"], approved=approved)[0].waiting is not None


def test_returning_schema_stays_in_force_while_its_version_waits() -> None:
    renamed = BREAKING["renamed"]
    state = ledger(FIRST, renamed)
    for minutes in (0, 30, 61):
        candidate = assign(state, value=fields(FIRST), now=NOW + timedelta(minutes=minutes))
        if not candidate.is_new:
            state = candidate.state
    assert candidate.is_new
    choice = choose_version(state, candidate, policy="compatible", has_records=True)
    assert choice.waiting is not None
    assert choice.in_force.version == 1
