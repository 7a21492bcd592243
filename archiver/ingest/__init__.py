"""The archive job: plan ranges of offsets, write them to files, stage and commit.

`plan` does no I/O; `task` and `kafka_log` run in workers. Imports nothing, for fast workers.
"""

__all__ = ["events", "job", "plan", "report", "stopping", "task", "topic"]
