"""Writes data files: records become rows, rows become files of bounded size, files are uploaded.

What decides about the content, the partition or the end of a file made from new records belongs here. Reading a source
(`archiver.ingest.kafka_log`), encoding a file format (`archiver.storage`), rewriting rows of existing files
(`archiver.upkeep`) and committing files (`archiver.commit`) don't. No module here imports Kafka's: a source hands over
`records.Records`, which are Arrow columns.

Each step hands one value to the next: `Records` -> `translate` -> `TranslatedRows` -> `range_files` -> `WrittenRange`
-> `upload` -> `TranslatedRange`. `range_writer` takes the steps, `rotation` says when a range ends and which folder it
goes to, `row_sums` and `recognition` count. If a table is partitioned by columns, `row_partitions` finds the rows'
partitions, and `partitioned_rows` keeps them until the range ends.

Nothing is imported here: workers start by the modules they need.
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
    "upload",
]
