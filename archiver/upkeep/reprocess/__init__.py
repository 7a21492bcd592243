"""`archiver reprocess`: decode rows with `__err__` again after a schema was fixed.

`Reprocess` runs it. `rounds` plans files and commits, `file` is the task for one file, `redecode` decodes its rows.
"""
