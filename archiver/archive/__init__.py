"""Reads an archive: from a topic's table to its records, or to whole Kafka batches. `topic_archive` is the entry.

Import modules one by one: workers of an ingest need few.
"""

__all__ = [
    "assemble",
    "batches",
    "block_order",
    "deletes",
    "deletion_vectors",
    "file_columns",
    "manifests",
    "mappings",
    "offset_order",
    "open_file",
    "partition_scan",
    "plan",
    "plan_cache",
    "projection",
    "read_ahead",
    "records",
    "reorder_buffer",
    "table_files",
    "tables",
    "topic_archive",
    "topic_files",
    "watermarks",
]
