"""Protobuf as a value format: descriptors become columns; the kernels decode and encode."""
