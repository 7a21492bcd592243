"""`archiver erase`: takes records out of an archive for good, from every file, snapshot and copy.

Their offsets stay known as erased. What they were is kept nowhere.
"""

__all__ = ["job", "report"]
