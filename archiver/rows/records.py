"""What a replay gives: records as a Kafka consumer sees them, one Arrow row each.

Every front end (consumer, JSON lines, endpoints) renders this and nothing else.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

HEADER: Final = pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())])

RECORDS: Final = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp_type", pa.int32(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", HEADER, nullable=False)), nullable=False),
    ]
)
"""`timestamp` is in ms, -1 where there is none; `timestamp_type` is -1 (none), 0 (create time) or 1 (log append)."""

LEADER_EPOCH: Final = pa.field("leader_epoch", pa.int32())

ASSEMBLED: Final = RECORDS.append(LEADER_EPOCH)
"""Records with what only some front ends pass on: the leader epoch their batch was written in."""
