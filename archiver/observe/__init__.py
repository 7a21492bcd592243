"""What an archiver shows of its jobs: screens for people, JSON lines, metrics, health and traces.

The archive job, `compact`, `orphans`, `expire`, `erase`, `reprocess`, `verify` and transfers to Kafka have a `_screen`
module for people and a `_json` module for machines, exports a `replay_screen`; other commands print by themselves.
Everything is printed on a `console`, which takes text as it is: tables as a `listing`, errors as `error_text`, numbers
as `amounts`, schemas in `schema_words`, what a table's owner keeps in `owner_words`. `telemetry` starts metrics, health
and traces of the archive job: `metering` counts its events into the metrics of `instruments`, `lag` says how long
records wait, `listener` serves these and `health`, `tracing` sends spans. Modules here only take events; what happens
in a job, and which events it has, belongs to the job's room.
"""

__all__ = [
    "amounts",
    "archive_json",
    "archive_screen",
    "compact_json",
    "compact_screen",
    "console",
    "erase_json",
    "erase_screen",
    "error_text",
    "expire_json",
    "expire_screen",
    "json_lines",
    "listener",
    "listing",
    "orphans_json",
    "orphans_screen",
    "output",
    "owner_words",
    "replay_screen",
    "reprocess_json",
    "reprocess_screen",
    "schema_words",
    "telemetry",
    "transfer_json",
    "transfer_screen",
    "verify_json",
    "verify_screen",
]
