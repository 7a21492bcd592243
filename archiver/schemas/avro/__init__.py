"""Avro's schemas: from `.avsc` files and a schema registry, and which writer an envelope names."""
