"""Runs lists of independent tasks. Everything about Spark is here; `spark` imports PySpark."""

from archiver.engine.runner import Engine, TaskOutcome

__all__ = ["Engine", "TaskOutcome"]
