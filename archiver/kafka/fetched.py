"""What a leader answers to a fetch."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.wire.transactions import AbortedTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A leader's answer to a fetch: raw batches, and the state of its log at that time.

    `high_watermark` and `last_stable_offset` are the offsets after the last replicated and the last committed record.
    `epoch_end` is set, without any data, if the log has diverged: the epoch of the record before the fetch offset ends
    earlier in the leader's log.
    """

    data: bytes
    aborted: tuple[AbortedTransaction, ...]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    epoch_end: int | None = None
