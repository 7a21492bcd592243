"""Columns of any format: field ids, ledger, evolution, Arrow and Iceberg types."""

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
