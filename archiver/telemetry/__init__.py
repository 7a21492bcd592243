"""Metrics, health and traces of the archive job, and of servers, for monitoring.

`metrics` is the table of all metrics. For the archive job, `start` starts what the configuration asks for, `metering`
counts the job's events into `instruments`, `lag` measures how long records wait, `tracing` sends spans. `serving` has
what servers show. `listener` serves metrics and `health` of both.
"""

__all__ = ["listener", "serving", "start"]
