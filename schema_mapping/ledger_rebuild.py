"""Rebuilds a ledger from its versions' mappings.

Each step must match the kept mapping. Only comments and later names may be lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from schema_mapping.columns.ledger import ASKS, LedgerState, Returning, SchemaVersion
from schema_mapping.errors import EvolutionError
from schema_mapping.field_ids import Assignment, assign
from schema_mapping.row import RowMapping

FIRST: Final = datetime.min.replace(tzinfo=UTC)
LAST: Final = datetime.max.replace(tzinfo=UTC)


def rebuild_ledger(mappings: Iterable[RowMapping]) -> LedgerState:
    """Raise EvolutionError, naming the version, if ids come out differently.

    A missing version keeps only its number.
    """
    state = LedgerState()
    for row in sorted(mappings, key=lambda mapping: mapping.schema_version):
        state = _learn(_up_to(state, row), row)
    return state


def _learn(state: LedgerState, row: RowMapping) -> LedgerState:
    ids = {entry.field_id for entry in state.entries}
    fresh = row.column_ids - ids
    if fresh:
        state = state.at_least(min(fresh) - 1)
    assigned = _assigned(state, row)
    if assigned.version < row.schema_version:
        # An older schema becomes a new version only by returning for good.
        returned = Returning(version=assigned.version, since=FIRST, asks=ASKS)
        assigned = _assigned(replace(state, returning=returned), row)
    if assigned.row != row:
        raise EvolutionError(
            "the ids of a schema version can't be derived from those before it: give the journal, or a backup of the "
            "registry",
            schema_version=row.schema_version,
        )
    return assigned.state


def _assigned(state: LedgerState, row: RowMapping) -> Assignment:
    return assign(
        state,
        key=row.key_schema,
        value=row.value_schema,
        options=row.options,
        partition_source=row.partition_source,
        now=None if state.returning is None else LAST,
    )


def _up_to(state: LedgerState, row: RowMapping) -> LedgerState:
    lost = tuple(
        SchemaVersion(version=number, fingerprint=f"lost-{number}", mapping=row.text)
        for number in range(state.newest + 1, row.schema_version)
    )
    return replace(state, versions=(*state.versions, *lost))
