"""What an archiver shows of its jobs: screens for people, JSON lines, metrics, health and traces.

The archive job, `orphans` and `reprocess` have a `_screen` module for people and a `_json` module for machines; other
commands print by themselves. `telemetry` starts metrics, health and traces of the archive job: `metering` counts its
events into the metrics of `instruments`, `listener` serves these and `health`, `tracing` sends spans.
Modules here only take events; what happens in a job, and which events it has, belongs to the job's room.
"""
