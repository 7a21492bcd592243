"""Metadata of records as it would be set, with rising times, and what waits for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from catalog.record_metadata import MetadataEntry, MetadataTarget, OfKey

WAITS = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
"""Statements that wait for a lock."""
START = datetime(2026, 1, 1, tzinfo=UTC)


def entry_of(
    target: MetadataTarget | bytes, name: str, value: str | None, *, seconds: int = 0, sequence: int = 1
) -> MetadataEntry:
    return MetadataEntry(
        id=f"01{seconds:012}{sequence:012}",
        target=OfKey(target) if isinstance(target, bytes) else target,
        name=name,
        value=value,
        time=START + timedelta(seconds=seconds),
        sequence=sequence,
        author="jane on host",
        salt="00" * 16,
    )
