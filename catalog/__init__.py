"""The archiver's memory: the registry in Postgres, and tables in an Iceberg REST catalog.

Nothing here reads Kafka or writes data files.
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
    "record_metadata",
    "registry",
    "term_runs",
    "value_terms",
]
