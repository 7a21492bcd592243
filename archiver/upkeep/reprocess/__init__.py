"""`archiver reprocess`: decode rows again after a schema was corrected or extended.

`rounds` plans files and commits, `file` is the task for one file. `row_filter` selects rows, `poor_rows` finds them,
`redecode` decodes them.
"""

__all__ = ["job", "report", "row_filter"]
