"""Remove records from a table for retention and erasure.

A rewrite is committed first; old files are deleted when nothing refers to them.
"""

__all__ = ["components", "conditions", "purge", "rewriting", "row_bounds", "snapshots", "work"]
