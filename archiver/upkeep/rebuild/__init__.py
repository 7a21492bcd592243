"""`archiver registry rebuild`: rebuild the registry from tables, journal and files.

`Rebuild` runs it. `archiver.commit.table_ranges` finds the committed ranges, `unreferenced` the files that were staged
and not committed.
"""

__all__ = ["job"]
