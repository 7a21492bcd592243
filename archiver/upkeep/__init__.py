"""Repairs of an archive and its registry.

Upkeep never changes offsets or bytes of archived records. Only `retire` and `erase` remove records; `holds` forbid it.
"""

__all__ = [
    "archived_topic",
    "compact",
    "consent",
    "erase",
    "holds",
    "indexing",
    "journal_upkeep",
    "metadata",
    "orphans",
    "rebuild",
    "reconcile",
    "refill",
    "removal",
    "repartition",
    "reprocess",
    "retire",
    "verify",
]
