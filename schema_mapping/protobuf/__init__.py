"""Protobuf as a value format: reads descriptors, turns messages into columns, and decodes and encodes values.

Other packages use `descriptors` for schemas, and mappings through `schema_mapping`. Field ids and evolution are in
`columns`.
"""

__all__ = ["column_options", "descriptors", "message_mapping", "type_graph", "union_mapping"]
