"""Selections of records: partitions, a start and an end, and conditions."""

__all__ = [
    "column_answers",
    "listed_files",
    "matching",
    "selection",
    "table_columns",
    "where",
    "where_syntax",
]
