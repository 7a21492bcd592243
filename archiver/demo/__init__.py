"""A year of flights from Kafka to Iceberg to Spark SQL and back."""

__all__ = ["run", "screen"]
