"""The Iceberg tables of an archive in a REST catalog: load, create, commit and settle.

`TableCatalog` is the way in; `ArchiveTable` is a loaded table. Whatever reads or writes table metadata belongs here.
Nothing here knows Postgres, and data files are read and written elsewhere.

- the catalog: `table_catalog` (the way in), `rest` (the client), `retry_after`; storage keys: `credentials`, `vended`;
  `file_io` for S3, Azure's and Google's stores, `s3_writer` for encryption, `late_file_io` for who mostly needs none;
  `store_settings` (which exist) and `store_refusals` (what a store's error means)
- a table: `archive_table`, `last_known_table` (when the catalog is away), `creation`, `schema_change`, `partitions`,
  `partition_spec` (specs of columns), `truncation` and `hidden_values` (what engines miss by them),
  `iceberg_format` (what can't be written or read)
- its properties: `properties`, `offsets` (how far each partition is archived), `bloom_filters` (which columns have one)
- commits: `commit` (once, or find out why not), `commit_answer`, and what is committed: `append`, `rewrite_commit`,
  `refill_commit`, `repartition`;
  below them `light_transaction`, `producers`, `whole_files` and `attempt_names`
- what a snapshot lists: `manifest_lists` (none that was cut short), `avro_blocks` below it
- what became of commits: `settle` (staged ranges), `lineage` (whether `main` still has ours), `schema_history`
- `views`: a topic's views, in catalogs that have them
- `scratch_table`: made and dropped to see whether a catalog lets us work
- upkeep of metadata: `expiry` decides, `housekeeping` does it
- what the table's owner set: `deletion_gate` (may files be deleted?), `owner_retention`, `owner_settings` (in words)
"""

__all__ = [
    "archive_table",
    "attempt_names",
    "auth_settings",
    "avro_blocks",
    "bloom_filters",
    "commit",
    "create_statement",
    "credentials",
    "deletion_gate",
    "expiry",
    "file_io",
    "hidden_values",
    "iceberg_format",
    "last_known_table",
    "lineage",
    "manifest_lists",
    "offsets",
    "owner_retention",
    "owner_settings",
    "partition_spec",
    "partitions",
    "properties",
    "refill_commit",
    "repartition",
    "rest",
    "retry_after",
    "rewrite_commit",
    "schema_change",
    "schema_history",
    "scratch_table",
    "settle",
    "store_refusals",
    "store_settings",
    "table_catalog",
    "vended",
    "views",
]
