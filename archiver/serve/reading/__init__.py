"""Archived topics for servers: batches from any offset, watermarks and times, shared by all readers.

- `chunks`: encoded batches of a range of offsets, and their cache
- `chunk_index`: finds the chunk with an offset, in memory or on disk
- `served_partition`: the state of one partition of a topic
- `served_topic`: one topic; it reads its archive in worker threads
- `partition_begins`: the begins of partitions, from the registry
- `table_listing`: the names of the catalog's tables
- `topics`: all topics, opened on first use and refreshed
- `partition_reader`: batches from an offset on; decodes what isn't cached, each range once, and reads ahead
- `spilled_chunks`: chunks on a local disk, for slow readers
- `workers`, `turns`: threads that read and decode, and their order
"""

from archiver.serve.reading.chunks import CHUNK_BYTES, Chunk, ChunkCache
from archiver.serve.reading.partition_begins import PartitionBegins
from archiver.serve.reading.partition_reader import ChunkReader, ReadBatches
from archiver.serve.reading.served_topic import ServedTopic
from archiver.serve.reading.spilled_chunks import SpilledChunks
from archiver.serve.reading.topics import ServedTopics
from archiver.serve.reading.workers import Workers

__all__ = [
    "CHUNK_BYTES",
    "Chunk",
    "ChunkCache",
    "ChunkReader",
    "PartitionBegins",
    "ReadBatches",
    "ServedTopic",
    "ServedTopics",
    "SpilledChunks",
    "Workers",
]
