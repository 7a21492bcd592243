"""What a test that isn't about it takes for a record's columns from Kafka (archiver/wire/columns.py)."""

from __future__ import annotations

from typing import Any, Final

PLAIN: Final[dict[str, Any]] = {
    "timestamp": 1_700_000_000_123,
    "headers": [],
    "timestamp_type": 0,
    "append_timestamp": None,
    "leader_epoch": 4,
    "producer_id": -1,
    "producer_epoch": -1,
    "base_sequence": -1,
    "attributes": 0,
}
"""A record outside transactions, without headers. Offset, key, value and batch are the test's."""
