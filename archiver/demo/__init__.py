"""The demo: a year of flights from Kafka to Iceberg to Spark SQL and back, compared byte for byte."""

__all__ = ["run", "screen"]
