"""Kafka's log as a source of records: `source` opens a range, `reading` reads it, `grouping` groups its batches.

What only Kafka has ends here: batches on the wire, leader epochs, fetches. `ingest_clock` gives batches their times.
Nothing is imported here: workers start by the modules they need.
"""

__all__ = ["source"]
