"""Whole Kafka record batches of an archive, for servers that Kafka clients read from.

`wire_columns` turns archived rows into records with their batch's fields, `borders` finds where batches begin and end,
`stream` encodes the batches of one partition, `fetch` answers requests by offset and bytes, and `open_streams` keeps
streams open in between.
The wire format itself is in `archiver.wire`.
"""

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
