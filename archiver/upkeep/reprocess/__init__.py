"""`archiver reprocess`: decode rows again after a schema was corrected or extended.

`Reprocess` runs it. `rounds` plans files and commits, `file` is the task for one file. `row_filter` says which rows are
asked for, `poor_rows` finds them, and `redecode` decodes them.
"""

__all__ = ["job", "report", "row_filter"]
