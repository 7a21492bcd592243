"""Metrics, health and traces of the archive job and of servers."""

__all__ = ["intake", "listener", "serving", "start"]
