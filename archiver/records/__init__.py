"""Select records: partitions, a start and an end, and conditions.

`where_syntax` parses conditions, `where` evaluates them, `column_answers` conditions on columns. `matching`
reads records. `possible`, `block_facts` and `listed_files` find blocks and files that may match. `metadata_terms`
replaces conditions on metadata.
"""

__all__ = [
    "block_facts",
    "column_answers",
    "former_columns",
    "listed_files",
    "matching",
    "metadata_terms",
    "possible",
    "selection",
    "table_columns",
    "unjudged",
    "where",
    "where_syntax",
]
