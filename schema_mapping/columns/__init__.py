"""Columns of any value format: field ids, the ledger that keeps them, schema evolution, Arrow and Iceberg types.

Nothing here knows Protobuf or bytes.
"""

__all__ = [
    "arrow",
    "compatibility",
    "docs",
    "evolution",
    "expansion",
    "fixed",
    "fixed_ids",
    "graph",
    "iceberg",
    "ids",
    "ledger",
    "ledger_tree",
    "mapped_rows",
    "options",
    "paths",
    "shape",
    "types",
    "zeros",
]
