"""Decide which ranges to archive next, their order and size. Computed from values; I/O is in `ingest.topic`."""

__all__ = ["backlog", "ranges", "waiting", "wave"]
