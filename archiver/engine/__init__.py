"""Runs lists of independent tasks, for ingest and upkeep alike; Spark is named nowhere else."""
