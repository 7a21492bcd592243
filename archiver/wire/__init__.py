"""Kafka's record batches: decodes their bytes to Arrow columns, encodes columns to batches. No I/O.

The batch formats v0 to v2 belong here: headers, checksums, compression, aborted transactions, and the digest of records
(`archiver.wire.record_digest`). Fetching bytes is the business of `archiver.kafka`, and the table's columns that of
`archiver.files` and `archiver.archive`.
"""

from archiver.wire.attributes import Codec
from archiver.wire.columns import (
    NO_TIME,
    NO_TIMESTAMP,
    RECORDS,
    AbortedTransaction,
    BatchIndex,
    DecodedBatches,
    DecodeLimits,
    LeaderEpochs,
)
from archiver.wire.decode import decode_batches
from archiver.wire.encode import BatchEncoder, EncodedBatches, encode_batches
from archiver.wire.gap import gap_batch

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
    "LeaderEpochs",
    "decode_batches",
    "encode_batches",
    "gap_batch",
]
