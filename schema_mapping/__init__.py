"""What the bytes mean: schemas as Iceberg types with stable field ids, and the codecs between bytes and columns.

A name is imported when it is first asked for: errors alone need neither Arrow nor pyiceberg.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schema_mapping.columns.ids import IdAssignment
    from schema_mapping.columns.options import MappingOptions
    from schema_mapping.field_ids import Assignment, LedgerEntry, LedgerState, assign
    from schema_mapping.formats import register
    from schema_mapping.protobuf.descriptors import MessageSchema, SourceSchema, UnionSchema
    from schema_mapping.protobuf.mapping import Mapping, compile_mapping
    from schema_mapping.protobuf.union_mapping import UnionMapping
    from schema_mapping.raw_mapping import RawMapping
    from schema_mapping.row import RowMapping
    from schema_mapping.value_format import DeclaredSchema, ValueFormat, ValueMapping, ValueSchema

__all__ = [
    "Assignment",
    "DeclaredSchema",
    "IdAssignment",
    "LedgerEntry",
    "LedgerState",
    "Mapping",
    "MappingOptions",
    "MessageSchema",
    "RawMapping",
    "RowMapping",
    "SourceSchema",
    "UnionMapping",
    "UnionSchema",
    "ValueFormat",
    "ValueMapping",
    "ValueSchema",
    "assign",
    "compile_mapping",
    "register",
]

_HOMES = {
    "protobuf.descriptors": ("MessageSchema", "SourceSchema", "UnionSchema"),
    "field_ids": ("Assignment", "LedgerEntry", "LedgerState", "assign"),
    "columns.ids": ("IdAssignment",),
    "formats": ("register",),
    "protobuf.mapping": ("Mapping", "compile_mapping"),
    "columns.options": ("MappingOptions",),
    "raw_mapping": ("RawMapping",),
    "row": ("RowMapping",),
    "protobuf.union_mapping": ("UnionMapping",),
    "value_format": ("DeclaredSchema", "ValueFormat", "ValueMapping", "ValueSchema"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
