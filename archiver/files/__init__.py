"""Writes data files: records become rows, rows become files of bounded size, files are uploaded.

`Records` -> `translate` -> `TranslatedRows` -> `range_files` -> `WrittenRange` -> `upload` -> `TranslatedRange`. No
module here imports Kafka's. `unapproved` keeps values raw that fit only a schema change that waits for approval.
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
