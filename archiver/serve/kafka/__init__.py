"""The Kafka protocol over archived topics (docs/serve.md).

Messages are kio's classes. `messages` leaves out fields that a version lacks.
"""

__all__ = ["endpoint", "running"]
