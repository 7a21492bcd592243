"""Avro as a value format.

Other packages use `schema`, `fingerprint`, and mappings through `schema_mapping`.
"""

__all__ = ["fingerprint", "schema"]
