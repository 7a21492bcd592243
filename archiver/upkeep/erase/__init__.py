"""`archiver erase`: takes records out of an archive for good, from every file, snapshot and copy.

Their offsets stay known as erased. What they were is kept nowhere.

`job` is the way in. `topic` is what the erasures of a topic work with, `removing` takes their rows out of the table,
and `finishing` deletes every object and copy that had them. `plan` erases in several topics, and `certificate` proves
it.
"""

__all__ = ["certificate", "job", "offset_list", "plan", "report", "shown_records"]
