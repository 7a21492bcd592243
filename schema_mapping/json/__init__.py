"""JSON as a value format: JSON Schemas, columns, and the codec with forms.

Other packages use `schema`, and mappings through `schema_mapping`.
"""

__all__ = ["schema"]
