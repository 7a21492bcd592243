"""Kafka topics as Iceberg tables, and the same records back."""
