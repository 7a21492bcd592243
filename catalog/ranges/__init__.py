"""Ranges of offsets and the files that hold their records: values and pure functions.

The registry, the journal and the tables share them. Nothing here does I/O. SQL belongs in `catalog.registry`, Iceberg
in `catalog.iceberg`.
"""

__all__ = ["fence", "holes", "legal_holds", "regrouping", "retirement", "rewrite", "spans", "stored_ranges"]
