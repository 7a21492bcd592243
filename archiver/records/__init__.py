"""Selections of records: partitions, a start and an end, and conditions on records.

`replay`, `republish`, `serve` and the jobs of `upkeep` select records with these. Reading the records belongs in
`archiver.archive`. `where_syntax` parses conditions and `where` evaluates them; `table_columns` finds the columns
that they name, and `column_answers` says for which rows these hold. `matching` reads the records of a selection,
`matching_file` the matching records of one file, and `unjudged` counts what a condition can't judge. `listed_files`
lists the files that may hold them.
"""

__all__ = [
    "column_answers",
    "listed_files",
    "matching",
    "selection",
    "table_columns",
    "where",
    "where_syntax",
]
