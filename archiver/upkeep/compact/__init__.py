"""`archiver compact`: merge small, overlapping and partly deleted files into few sorted ones."""

__all__ = ["choice", "chore", "job", "report"]
