"""From the table back to Kafka records: plan, scan, assemble, and the consumer over them."""
