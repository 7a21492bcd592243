"""Background work of an archive job."""

__all__ = ["chore", "runner", "tidying"]
