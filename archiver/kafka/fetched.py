"""The answer to a fetch."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.wire.transactions import AbortedTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Raw batches and the leader's exclusive ends.

    `epoch_end` is set, without data, if the previous record's epoch ends earlier in the leader's log.
    """

    data: bytes
    aborted: tuple[AbortedTransaction, ...]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    epoch_end: int | None = None
