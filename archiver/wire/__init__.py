"""Kafka's record batches as bytes and as columns; no I/O."""

from archiver.wire.codec import Codec
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
from archiver.wire.encode import BatchEncoder, EncodedBatches, encode_batches

__all__ = [
    "NO_TIME",
    "NO_TIMESTAMP",
    "RECORDS",
    "AbortedTransaction",
    "BatchEncoder",
    "BatchIndex",
    "Codec",
    "DecodeLimits",
    "DecodedBatches",
    "EncodedBatches",
    "decode_batches",
    "encode_batches",
]
