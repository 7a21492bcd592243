"""Repairs of an archive and its registry, one package or module for each command.

`compact`, `orphans`, `rebuild`, `reconcile`, `refill`, `repartition` and `reprocess` don't know each other; what they
share is in the other modules. Upkeep never changes the offsets or bytes of archived records. `retire` and `erase` take
records out of tables on purpose, which `holds` forbid; `removal` has what these two share.
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
