"""Decide which ranges to archive next, their order and size, without I/O."""

__all__ = ["backlog", "ranges", "waiting", "wave"]
