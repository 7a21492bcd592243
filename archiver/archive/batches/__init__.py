"""Whole Kafka record batches of an archive."""

from archiver.archive.batches.borders import BatchSizes
from archiver.archive.batches.fetch import ArchivedBatches, BatchCursor, BatchOptions, BatchSource, FetchedBatches
from archiver.archive.batches.open_streams import OpenStreams

__all__ = [
    "ArchivedBatches",
    "BatchCursor",
    "BatchOptions",
    "BatchSizes",
    "BatchSource",
    "FetchedBatches",
    "OpenStreams",
]
