"""The archive job: plans ranges of offsets, has tasks write them to files, stages the files and commits them.

`plan` decides and does no I/O, `topic` holds one topic's run, `task` works in a Spark worker, `kafka_log` reads Kafka's
log for it, `waves.py` and `job.py` bring them together, `events.py` and `report.py` say what happened. Anything that
another job needs too belongs below: reading Kafka in `archiver.kafka`, writing files in `archiver.files`, commits in
`archiver.commit`. Nothing is imported here: workers start by the modules they need.
"""

__all__ = ["events", "job", "plan", "report", "stopping", "task", "topic"]
