"""Protobuf schemas: from files and from a schema registry, and the messages that envelopes name."""
