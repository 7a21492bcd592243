"""Kafka's record batches as bytes and as columns; no I/O."""

from archiver.wire.columns import (
    NO_TIME,
    NO_TIMESTAMP,
    RECORDS,
    AbortedTransaction,
    BatchIndex,
    DecodedBatches,
    DecodeLimits,
)
from archiver.wire.decode import decode_batches

__all__ = [
    "NO_TIME",
    "NO_TIMESTAMP",
    "RECORDS",
    "AbortedTransaction",
    "BatchIndex",
    "DecodeLimits",
    "DecodedBatches",
    "decode_batches",
]
