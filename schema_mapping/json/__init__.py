"""JSON as a value format: JSON Schemas, columns, and the codec with forms.

Other packages use `schema` and `sampled_type`, and mappings through `schema_mapping`.
"""

__all__ = ["sampled_type", "schema"]
