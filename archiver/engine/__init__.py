"""Runs lists of independent tasks. Only `spark` imports PySpark."""

from archiver.engine.runner import Engine, TaskOutcome

__all__ = ["Engine", "TaskOutcome"]
