"""Ranges of offsets and their files: values and pure functions for registry, journal and tables."""

__all__ = [
    "fence",
    "holes",
    "legal_holds",
    "regrouping",
    "replaced_files",
    "retirement",
    "rewrite",
    "spans",
    "stored_ranges",
]
