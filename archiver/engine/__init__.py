"""Runs lists of independent tasks, for ingest and upkeep alike.

`Engine` is all that jobs know; `EngineChoice` gives them one. Everything about Spark belongs here and
nowhere else: sessions, Java, and the Python workers that tasks run in. What a task does belongs to the room of its job.
`SparkEngine` is in `archiver.engine.spark`: it imports PySpark, so import it only when a job starts.
"""

from archiver.engine.runner import Engine, Outcome

__all__ = ["Engine", "Outcome"]
