"""`archiver reprocess`: decode rows again after a schema was corrected or extended."""

__all__ = ["job", "report", "row_filter"]
