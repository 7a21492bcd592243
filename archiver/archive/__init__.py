"""Reading an archive: from a topic's table to its records, or to whole Kafka batches.

The way of a read, module by module:

- tables: `tables` (the catalog), `topic_archive` (one topic, the way in)
- files: `manifests`, `file_columns`, `table_files` (what manifests say), `plan`, `plan_cache`, `watermarks`
- deletes: `delete_index` (which of them apply to a file), `deletes`, `deletion_vectors` (which rows they remove)
- rows: `open_file`, `topic_files` (how tasks open them), `projection` (columns by field id), `mappings` (which mapping
  wrote a row)
- records: `records` (their columns), `assemble`, `coercion`; in order of offset by `partition_scan`, `block_order`,
  `offset_order`, `reorder_buffer` and `spilled_run`; a batch ahead of who works on them by `read_ahead`
- Kafka batches: `batches`

Nothing here writes a table, or talks to Kafka, Spark or people. Modules are imported one by one: workers of an ingest
need few of them.
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
