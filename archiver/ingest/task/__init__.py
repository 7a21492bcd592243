"""The task in a Spark Python worker: one range of a partition from Kafka to files in the object store."""
