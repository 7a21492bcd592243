"""Taking records out of a table on purpose, for retention and erasure: which files go together, and their end.

A removal commits a rewrite first. Its old files are deleted from the store once nothing refers to them any more.
"""

__all__ = ["components", "conditions", "purge", "rewriting", "row_bounds", "snapshots", "work"]
