"""Avro's schemas, from `.avsc` files and a schema registry."""
