"""The archive job: plan ranges of offsets, write them to files in tasks, stage and commit.

`plan` does no I/O, `topic` holds a topic's run, `task` and `kafka_log` run in workers. Imports nothing: workers start
by the modules they need.
"""

__all__ = ["events", "job", "plan", "report", "stopping", "task", "topic"]
