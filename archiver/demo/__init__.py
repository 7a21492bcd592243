"""The demo: a year of real flights from Kafka to Iceberg to Spark SQL and back, compared byte for byte.

Only the command line uses this room.
"""

__all__ = ["run", "screen"]
