"""Decides what to archive next: which ranges of offsets, in which order, and how large.

Everything here is computed from values; asking Kafka, the table or the registry belongs in `archiver.ingest.topic`.
"""

__all__ = ["backlog", "ranges", "waiting", "wave"]
