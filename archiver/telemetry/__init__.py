"""Metrics, health and traces of the archive job and of servers.

`metrics` is the table of all metrics; `start` starts what the configuration enables.
"""

__all__ = ["intake", "listener", "serving", "start"]
