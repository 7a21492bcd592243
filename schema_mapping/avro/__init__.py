"""Avro as a value format: schemas, columns, and the codec by writer schemas.

Other packages use `schema`, and mappings through `schema_mapping`.
"""

__all__ = ["schema"]
