"""Transfers of archived records to a Kafka topic: exactly once, resumable, with a map of offsets.

A `transfer` reads the archive and writes whole batches in transactions. How far it came is written in the same
transactions (`progress_log`). This is the only room that knows both the archive's reading side and Kafka's brokers.
"""

__all__ = ["client_options", "job", "rate", "report"]
