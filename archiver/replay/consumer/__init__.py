"""A consumer of archived topics with the methods of `confluent_kafka.Consumer`."""
