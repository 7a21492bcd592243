"""JSON as a format of keys and values: JSON Schemas from files and a schema registry."""
