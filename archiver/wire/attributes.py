"""The bits of a batch's attributes."""

from __future__ import annotations

from typing import Final

CODEC: Final = 0b0000111
LOG_APPEND_TIME: Final = 0b0001000
TRANSACTIONAL: Final = 0b0010000
CONTROL: Final = 0b0100000
DELETE_HORIZON: Final = 0b1000000
"""Compaction has set the batch's first timestamp to the time from which its tombstones may be removed."""

ABORT_MARKER: Final = 0
"""The type of the control batch that aborts a transaction."""
