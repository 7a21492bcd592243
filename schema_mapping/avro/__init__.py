"""Avro as a value format.

Other packages use `schema`, and mappings through `schema_mapping`.
"""

__all__ = ["schema"]
