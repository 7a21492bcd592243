"""`archiver registry rebuild`: rebuild the registry from tables, journal and files."""

__all__ = ["job"]
