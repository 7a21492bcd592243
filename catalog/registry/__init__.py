"""The registry: the archiver's memory in Postgres (docs/stored-files.md).

`Registry` is the entry point. All SQL is here, one module per concern.
"""

from catalog.registry.group_coordinators import ClaimOutcome, GroupClaim, OffsetBudget
from catalog.registry.group_offsets import GroupOffset
from catalog.registry.parts import Part, in_transaction
from catalog.registry.registry import KnownFiles, MissingObjects, Registry, RegistryReader
from catalog.registry.serve_nodes import ServeNode, ServeView
from catalog.registry.served_users import EveryUser, ScramKeys

__all__ = [
    "ClaimOutcome",
    "EveryUser",
    "GroupClaim",
    "GroupOffset",
    "KnownFiles",
    "MissingObjects",
    "OffsetBudget",
    "Part",
    "Registry",
    "RegistryReader",
    "ScramKeys",
    "ServeNode",
    "ServeView",
    "in_transaction",
]
