"""The Kafka protocol over archived topics, for unmodified clients (docs/serve.md).

Messages are kio's classes. `messages` leaves out the fields that a version lacks.
"""

__all__ = ["endpoint", "running"]
