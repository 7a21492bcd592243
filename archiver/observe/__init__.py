"""What an archiver shows of its jobs: screens for people, JSON lines, metrics, health and traces.

Each job has a `_screen` module for people and a `_json` module for machines. `telemetry` starts metrics, health and
traces. Modules here only take events; what happens in a job, and which events it has, belongs to the job's room.
"""
