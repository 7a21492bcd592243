"""Repairs of an archive and its registry, one package or module for each command.

Upkeep never changes the offsets or bytes of archived records. Only `retire` and `erase` remove records from tables;
`holds` forbid it.
"""

__all__ = [
    "archived_topic",
    "compact",
    "consent",
    "erase",
    "holds",
    "journal_upkeep",
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
