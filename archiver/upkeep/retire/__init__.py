"""`archiver expire`: moves the first offsets of a topic's archive on, and takes what lies before them out of its table.

Whole files go. Rows of a file that also has younger ones go only if that is asked for.
"""

__all__ = ["chore", "cut", "job", "report"]
