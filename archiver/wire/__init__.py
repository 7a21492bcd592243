"""Kafka's record batches (v0 to v2) to Arrow columns and back. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archiver.light_start import late_names

if TYPE_CHECKING:
    from archiver.wire.columns import (
        NO_TIME,
        NO_TIMESTAMP,
        RECORDS,
        BatchIndex,
        DecodedBatches,
        DecodeLimits,
        LeaderEpochs,
    )
    from archiver.wire.decode import decode_batches
    from archiver.wire.encode import BatchEncoder, EncodedBatches, encode_batches
    from archiver.wire.gap import gap_batch
    from archiver.wire.transactions import AbortedTransaction

__all__ = [
    "NO_TIME",
    "NO_TIMESTAMP",
    "RECORDS",
    "AbortedTransaction",
    "BatchEncoder",
    "BatchIndex",
    "DecodeLimits",
    "DecodedBatches",
    "EncodedBatches",
    "LeaderEpochs",
    "decode_batches",
    "encode_batches",
    "gap_batch",
]

__getattr__ = late_names(
    __name__,
    {
        "archiver.wire.columns": (
            "NO_TIME",
            "NO_TIMESTAMP",
            "RECORDS",
            "BatchIndex",
            "DecodedBatches",
            "DecodeLimits",
            "LeaderEpochs",
        ),
        "archiver.wire.decode": ("decode_batches",),
        "archiver.wire.encode": ("BatchEncoder", "EncodedBatches", "encode_batches"),
        "archiver.wire.gap": ("gap_batch",),
        "archiver.wire.transactions": ("AbortedTransaction",),
    },
)
