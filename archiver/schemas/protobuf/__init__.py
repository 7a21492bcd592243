"""Protobuf schemas, from files and a schema registry, and the messages of envelopes."""
