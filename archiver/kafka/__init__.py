"""A client of any Kafka: connections, leaders, fetches, and ranges of offsets read whole (docs/concepts.md, step 2)."""
