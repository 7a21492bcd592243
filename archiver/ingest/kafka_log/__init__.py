"""Kafka's log as a source of records: `source` reads a range in a worker, `grouping` makes records of its batches.

What only Kafka has ends here: batches on the wire, leader epochs, fetches. `ingest_clock` gives batches their times.
Nothing is imported here: workers start by the modules they need.
"""

__all__ = ["grouping", "ingest_clock", "source"]
