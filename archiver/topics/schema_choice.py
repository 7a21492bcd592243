"""The schema version for a topic's records.

A new one is stored with its first records. Breaking ones need approval, unless `on_schema_change = "apply"`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from catalog.registry.schema_changes import StoredChange
from schema_mapping.columns.compatibility import broken_rules
from schema_mapping.columns.evolution import Change
from schema_mapping.columns.ledger import LedgerState
from schema_mapping.field_ids import Assignment, assignment_in_force

OnSchemaChange: TypeAlias = Literal["apply", "compatible", "halt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingChange:
    """`changes` break queries."""

    candidate: Assignment
    base_version: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChoice:
    """At most one of `next_version` and `waiting` is set."""

    in_force: Assignment
    next_version: Assignment | None = None
    waiting: WaitingChange | None = None


def choose_version(
    state: LedgerState,
    candidate: Assignment,
    *,
    policy: OnSchemaChange,
    has_records: bool,
    approved: Iterable[StoredChange] = (),
) -> SchemaChoice:
    """Without records any change is taken: no query has read the table."""
    in_force = assignment_in_force(state)
    changes = tuple(broken.change for broken in broken_rules(candidate.changes))
    if not changes or policy == "apply" or not has_records or _is_approved(state, candidate, approved):
        return SchemaChoice(in_force=in_force, next_version=candidate)
    waiting = WaitingChange(candidate=candidate, base_version=state.newest, changes=changes)
    return SchemaChoice(in_force=in_force, waiting=waiting)


def _is_approved(state: LedgerState, candidate: Assignment, approved: Iterable[StoredChange]) -> bool:
    key = (state.newest, candidate.fingerprint)
    return any(change.is_approved and (change.base_version, change.fingerprint) == key for change in approved)
