"""Data files, and the object store and local spool that they pass through.

`objects` reads and writes the object store. `spool` keeps files on local disk until they are uploaded. `segment` is the
interface of a file format, `formats` lists the formats, and `parquet` is the first of them. `journal` keeps, beside the
tables, what a lost registry is rebuilt from. `exact_type` tells Arrow types apart by their field ids, too.
`exact_reads` takes no answer of a store that was cut short.

What rows mean, and when a file ends, doesn't belong here: see `schema_mapping` and `archiver.files`. Other rooms import
these modules directly. This package imports nothing, so that commands start fast.
"""

__all__ = [
    "exact_reads",
    "exact_type",
    "file_names",
    "formats",
    "journal",
    "journal_sums",
    "journal_survey",
    "objects",
    "private_folder",
    "row_columns",
    "row_order",
    "segment",
    "spool",
    "spool_file",
    "store_errors",
]
