"""Protobuf as a value format: reads descriptors, turns messages into columns, and decodes and encodes values.

What belongs here: everything that knows Protobuf's descriptors, types or wire format, and the kernels (`kernel/`) that
read and write it. What doesn't: field ids and evolution, which are the same for every format (`columns`). Other rooms
use `descriptors` for schemas, and mappings through `schema_mapping`.
"""

__all__ = ["column_options", "descriptors", "message_mapping", "type_graph", "union_mapping"]
