"""`archiver erase`: remove records for good from every file, snapshot and copy.

Only their offsets stay, as erased. `job` is the entry point; `removing` commits files without the rows, `finishing`
deletes every object and copy, `plan` erases in several topics, `certificate` proves it.
"""

__all__ = ["certificate", "job", "offset_list", "plan", "report", "shown_records"]
