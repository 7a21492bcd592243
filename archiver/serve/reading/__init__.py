"""Archived topics for servers: batches from any offset, watermarks and times."""

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
