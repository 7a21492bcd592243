"""Remove records from a table for retention and erasure.

A removal commits a rewrite first; the old files are deleted from the store when nothing refers to them.
"""

__all__ = ["components", "conditions", "purge", "rewriting", "row_bounds", "snapshots", "work"]
