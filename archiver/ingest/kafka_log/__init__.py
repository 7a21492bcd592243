"""Kafka's log as a source of records.

Batches on the wire, leader epochs and fetches stay in here. Imports nothing: workers start by the modules they need.
"""

__all__ = ["source"]
