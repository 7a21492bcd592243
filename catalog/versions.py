"""A schema version of a topic as it is remembered, in the registry and in the journal (docs/schema-evolution.md)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from schema_mapping.evolution import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRecord:
    """A schema version: when it was made (UTC), by which fingerprint it is known, and what it changed."""

    version: int
    created: datetime
    fingerprint: str
    changes: tuple[Change, ...]
