"""`archiver expire`: advance the first offsets of an archive, and remove older records from its table.

Whole files are removed. Older rows of files with younger ones are removed only on request.
"""

__all__ = ["chore", "cut", "job", "report"]
