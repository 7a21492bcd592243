"""Protobuf schemas, from files and a schema registry."""
