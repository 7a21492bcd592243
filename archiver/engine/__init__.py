"""Runs lists of independent tasks. Everything about Spark is in this package.

`archiver.engine.spark` imports PySpark: import it only when a job starts.
"""

from archiver.engine.runner import Engine, TaskOutcome

__all__ = ["Engine", "TaskOutcome"]
