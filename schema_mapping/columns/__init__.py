"""Columns of any value format: field ids, the ledger that keeps them, schema evolution, Arrow and Iceberg types.

What belongs here: whatever holds for the columns of every format. What doesn't: anything that knows Protobuf or bytes.
Other rooms import the modules: `ledger` for the state, `evolution` for changes, `compatibility` for what they do to
queries, `arrow` for fields with ids, `options` for limits.
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
