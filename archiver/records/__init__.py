"""Selections of records: partitions, a start and an end, and conditions on records.

`replay`, `republish`, `serve` and the jobs of `upkeep` select records with these. Reading the records belongs in
`archiver.archive`. `where_syntax` parses conditions and `where` evaluates them; `table_columns` finds the columns
that they name, and `column_answers` says for which rows these hold. `matching` reads the records of a selection,
`matching_file` the matching records of one file, and `unjudged` counts what a condition can't judge. `possible` and
`block_facts` say in which blocks a condition can't hold. `former_columns` knows a field's former columns.
`listed_files` lists the files that may hold them.
"""

__all__ = [
    "block_facts",
    "column_answers",
    "former_columns",
    "listed_files",
    "matching",
    "possible",
    "selection",
    "table_columns",
    "unjudged",
    "where",
    "where_syntax",
]
