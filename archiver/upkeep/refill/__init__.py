"""`archiver refill`: bring back records that a table lost, from existing files or from Kafka."""

__all__ = ["job", "report"]
