"""Finds records in the archives of topics by conditions, without reading what can't match.

`query` is what to search, and `source` a topic to search in. `file_facts` rules out files by manifests; `open_files`
opens the remaining files, `block_matches` evaluates the condition on the columns that it names. `search` orders the
work so that the newest records come first, and `point_reads` reads the matching records alone. `report` counts what
each stage ruled out. Indexes are advisory: whatever they don't know is read.
"""

__all__ = ["query", "report", "search", "source"]
