"""`archiver orphans`: find and delete files that no table refers to and none will."""

__all__ = ["job", "noted", "references", "removal", "report"]
