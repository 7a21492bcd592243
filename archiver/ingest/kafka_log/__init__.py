"""Kafka's log as a source of records: batches, leader epochs and fetches stay in here.

Imports nothing, for fast workers.
"""

__all__ = ["source"]
