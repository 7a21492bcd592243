"""What the archiver remembers: the registry in Postgres, and the tables in an Iceberg REST catalog.

`registry` keeps the state of topics and ranges, `iceberg` loads and commits to tables, `ranges` are the values that
both share, `account` says by offsets which rows a table must have, `recognition` says how well schemas fit a file,
`partitioning` how a table is partitioned, `offset_range` offsets of a partition, `journal_entries` describes what the
journal keeps, `journal_summaries` how many of its entries share an object. Nothing here reads Kafka or writes data
files: that is the work of `archiver`.
"""

__all__ = [
    "account",
    "current_ranges",
    "digests",
    "errors",
    "iceberg",
    "journal_entries",
    "journal_summaries",
    "model",
    "offset_range",
    "partitioning",
    "ranges",
    "recognition",
    "registry",
]
