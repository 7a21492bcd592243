"""Finds records in archives by conditions, without reading what can't match.

`file_facts` rules out files by manifests, `block_matches` evaluates the condition, `search` gives the best records
first. Indexes are advisory: files and rows that they don't cover are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archiver.light_start import late_names

if TYPE_CHECKING:
    from archiver.find.opening import find as find
    from archiver.find.query import FindQuery as FindQuery
    from archiver.find.report import FindReport as FindReport
    from archiver.find.search import Search as Search

__all__ = ["FindQuery", "FindReport", "Search", "find"]
__getattr__ = late_names(
    __name__,
    {
        "archiver.find.opening": ("find",),
        "archiver.find.query": ("FindQuery",),
        "archiver.find.report": ("FindReport",),
        "archiver.find.search": ("Search",),
    },
)
