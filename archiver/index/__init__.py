"""The term store: offsets of the values of chosen columns, so that searches read few files.

Runs are advisory.
"""

from __future__ import annotations

__all__ = ["builder", "claim", "columns", "lookup", "merging", "removal", "store", "trimming"]
