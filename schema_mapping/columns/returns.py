"""When an older schema that is asked for again has come to stay (docs/schema-evolution.md).

While two versions of a producer take turns, the older one is asked for between requests for the newer one. It has come
to stay once it has been asked for some time, and nothing else has.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from schema_mapping.columns.ledger import LedgerState, Returning, SchemaVersion

LASTING: Final = timedelta(hours=1)
ASKS: Final = 3


def heard(state: LedgerState, seen: SchemaVersion, now: datetime) -> LedgerState:
    """The ledger after a version that it knows was asked for."""
    if seen is state.versions[-1]:
        return replace(state, returning=None)
    known = state.returning
    if known is None or known.version != seen.version:
        return replace(state, returning=Returning(version=seen.version, since=now))
    return replace(state, returning=replace(known, asks=known.asks + 1))


def has_come_to_stay(state: LedgerState, now: datetime) -> bool:
    """Whether the version that was asked for last is in force again from now on."""
    returning = state.returning
    return returning is not None and returning.asks >= ASKS and now - returning.since >= LASTING
