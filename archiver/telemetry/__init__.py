"""Metrics, health and traces of the archive job, for monitoring.

`start` starts what the configuration asks for. `metering` counts the job's events into the metrics of `instruments`,
`lag` measures how long records wait, `listener` serves these and `health`, `tracing` sends spans.
"""

__all__ = ["listener", "start"]
