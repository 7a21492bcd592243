"""Deciding what to archive next: pure functions over the state of partitions."""
