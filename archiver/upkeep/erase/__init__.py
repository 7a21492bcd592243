"""`archiver erase`: takes records out of an archive for good, from every file, snapshot and copy.

Their offsets stay known as erased. What they were is kept nowhere.

`job` is the way in. `topic` is what the erasures of a topic work with, `removing` takes their rows out of the table,
and `finishing` has every object and copy deleted that had them.
"""

__all__ = ["job", "offset_list", "report", "shown_records"]
