"""Transfer archived records to a Kafka topic: exactly once, resumable, with a map of offsets."""

__all__ = ["client_options", "job", "rate", "report"]
