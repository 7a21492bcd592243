"""Select records: partitions, a start and an end, and conditions.

`where_syntax` parses conditions, `where` evaluates them, `column_answers` conditions on columns. `matching`
reads records. `possible`, `block_facts` and `listed_files` find blocks and files that may match.
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
