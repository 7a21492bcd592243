"""Protobuf as a value format.

Other packages use `descriptors`, and mappings through `schema_mapping`.
"""

__all__ = ["column_options", "descriptors", "message_mapping", "type_graph", "union_mapping"]
