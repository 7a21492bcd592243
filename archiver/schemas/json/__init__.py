"""JSON Schemas from files and a schema registry."""
