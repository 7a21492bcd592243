"""JSON as a value format.

Other packages use `schema` and `sampled_type`, and mappings through `schema_mapping`.
"""

__all__ = ["sampled_type", "schema"]
