"""`archiver expire`: advance first offsets, and remove older records from the table."""

__all__ = ["chore", "cut", "job", "report"]
