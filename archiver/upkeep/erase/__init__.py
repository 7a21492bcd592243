"""`archiver erase`: remove records from every file, snapshot and copy. Only their offsets stay."""

__all__ = ["certificate", "job", "offset_list", "plan", "report", "shown_records"]
