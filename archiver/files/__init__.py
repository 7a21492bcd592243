"""Writes data files.

`Records` -> `translate` -> `TranslatedRows` -> `range_files` -> `WrittenRange` -> `upload` -> `TranslatedRange`.
"""

__all__ = [
    "partitioned_rows",
    "range_files",
    "range_writer",
    "recognition",
    "records",
    "rotation",
    "row_partitions",
    "row_sums",
    "unapproved",
    "upload",
]
