"""The Iceberg tables of an archive in a REST catalog: load, create, commit and settle.

`TableCatalog` is the entry point, `ArchiveTable` a loaded table. All table metadata is read and written here; nothing
here knows Postgres.
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
