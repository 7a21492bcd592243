"""The bits of a batch's attributes, as the protocol numbers them."""

from __future__ import annotations

from typing import Final

CODEC: Final = 0b0000111
LOG_APPEND_TIME: Final = 0b0001000
TRANSACTIONAL: Final = 0b0010000
CONTROL: Final = 0b0100000
DELETE_HORIZON: Final = 0b1000000
"""The batch's first timestamp holds the time at which its tombstones may go (set by compaction)."""

ABORT_MARKER: Final = 0
"""The type of the control batch that ends a transaction as aborted."""
