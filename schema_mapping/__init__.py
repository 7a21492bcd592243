"""Schemas to columns with stable field ids, and values to rows and back. Without I/O.

Names are imported at first use: errors need no Arrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schema_mapping.columns.evolution import Change, ChangeKind
    from schema_mapping.columns.ids import ColumnIds
    from schema_mapping.columns.ledger import ColumnState, LedgerEntry, LedgerState, SchemaVersion
    from schema_mapping.columns.options import MappingOptions
    from schema_mapping.errors import (
        ContextError,
        DescriptorError,
        EvolutionError,
        KernelError,
        MappingOptionsError,
        RowsTooLargeError,
        SchemaMappingError,
    )
    from schema_mapping.field_ids import Assignment, assign, ledger_schema
    from schema_mapping.formats import register
    from schema_mapping.ledger_rebuild import rebuild_ledger
    from schema_mapping.outline import Outline
    from schema_mapping.protobuf.descriptors import MessageSchema, SourceSchema, UnionSchema
    from schema_mapping.protobuf.message_mapping import MessageMapping, compile_mapping
    from schema_mapping.protobuf.union_mapping import UnionMapping
    from schema_mapping.raw_mapping import RawMapping
    from schema_mapping.row import PartitionSource, RowMapping, row_mapping_from_text
    from schema_mapping.secrets import without_secrets
    from schema_mapping.value_format import NOT_ONE, DeclaredSchema, ValueFormat, ValueMapping, ValueSchema

__all__ = [
    "NOT_ONE",
    "Assignment",
    "Change",
    "ChangeKind",
    "ColumnIds",
    "ColumnState",
    "ContextError",
    "DeclaredSchema",
    "DescriptorError",
    "EvolutionError",
    "KernelError",
    "LedgerEntry",
    "LedgerState",
    "MappingOptions",
    "MappingOptionsError",
    "MessageMapping",
    "MessageSchema",
    "Outline",
    "PartitionSource",
    "RawMapping",
    "RowMapping",
    "RowsTooLargeError",
    "SchemaMappingError",
    "SchemaVersion",
    "SourceSchema",
    "UnionMapping",
    "UnionSchema",
    "ValueFormat",
    "ValueMapping",
    "ValueSchema",
    "assign",
    "compile_mapping",
    "ledger_schema",
    "rebuild_ledger",
    "register",
    "row_mapping_from_text",
    "without_secrets",
]

_HOMES = {
    "columns.evolution": ("Change", "ChangeKind"),
    "columns.ids": ("ColumnIds",),
    "columns.ledger": ("ColumnState", "LedgerEntry", "LedgerState", "SchemaVersion"),
    "columns.options": ("MappingOptions",),
    "errors": (
        "ContextError",
        "DescriptorError",
        "EvolutionError",
        "KernelError",
        "MappingOptionsError",
        "RowsTooLargeError",
        "SchemaMappingError",
    ),
    "field_ids": ("Assignment", "assign", "ledger_schema"),
    "formats": ("register",),
    "ledger_rebuild": ("rebuild_ledger",),
    "outline": ("Outline",),
    "protobuf.descriptors": ("MessageSchema", "SourceSchema", "UnionSchema"),
    "protobuf.message_mapping": ("MessageMapping", "compile_mapping"),
    "protobuf.union_mapping": ("UnionMapping",),
    "raw_mapping": ("RawMapping",),
    "row": ("PartitionSource", "RowMapping", "row_mapping_from_text"),
    "secrets": ("without_secrets",),
    "value_format": ("NOT_ONE", "DeclaredSchema", "ValueFormat", "ValueMapping", "ValueSchema"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
