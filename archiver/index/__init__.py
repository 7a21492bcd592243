"""The term store: at which offsets the values of chosen columns are, so that searches read few files.

`columns` are the indexed columns and the terms of their values. `builder` reads files that no run covers and writes
runs, `merging` makes one run of several, `removal` deletes runs, and `lookup` reads them. Runs are advisory.
"""

from __future__ import annotations

__all__ = ["builder", "columns", "lookup", "merging", "removal", "store"]
