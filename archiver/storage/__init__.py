"""Data files, object store and spool. Imports nothing: commands start fast."""

__all__ = [
    "exact_reads",
    "exact_type",
    "file_names",
    "formats",
    "journal",
    "journal_memory",
    "journal_sums",
    "journal_survey",
    "metadata_folder",
    "metered",
    "objects",
    "postings",
    "private_folder",
    "row_columns",
    "row_order",
    "segment",
    "spool",
    "spool_file",
    "store_errors",
    "value_sets",
]
