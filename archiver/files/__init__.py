"""Writes data files: decoded batches become rows, rows become files of bounded size, files are uploaded.

What decides about the content, the partition or the end of a file made from Kafka's records belongs here; the archive
job's task uses it, and refill by that task. Reading Kafka, encoding a file format (`archiver.storage`), rewriting rows
of existing files (`archiver.upkeep`) and committing files (`archiver.commit`) don't.

`grouping` groups batches and asks `ingest_clock` for their times. `range_writer` writes the groups: `translate` makes
rows of them, `rotation` says where a range ends and which folder it goes to, `range_files` has its files, `recognition`
counts how well the schema fits, `upload` uploads them. Where a table is partitioned by columns, `row_partitions` tells
the rows' partitions, and `partitioned_rows` keeps them until the range ends.

Nothing is imported here: workers start by the modules they need.
"""

__all__ = [
    "partitioned_rows",
    "range_files",
    "range_writer",
    "recognition",
    "rotation",
    "row_partitions",
    "upload",
]
