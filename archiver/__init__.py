"""Brings Kafka topics into Iceberg tables and gives the same records back."""
