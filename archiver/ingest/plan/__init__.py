"""Decide which ranges to archive next, without I/O."""

__all__ = ["backlog", "ranges", "waiting", "wave"]
