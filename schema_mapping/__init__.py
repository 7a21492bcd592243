"""Schemas and values: turns schemas into columns with stable field ids, and values into rows and back.

What belongs here: the seam of value formats (`value_format`, `formats`), what all formats share (`columns`), one
package for each format (`protobuf`), and the rows of a data file (`row`). What doesn't: I/O of any kind; Kafka, tables
and the registry are the business of `archiver` and `catalog`.

A name is imported when it is first used: whoever needs only the errors loads neither Arrow nor pyiceberg.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schema_mapping.columns.ids import ColumnIds
    from schema_mapping.columns.options import MappingOptions
    from schema_mapping.field_ids import Assignment, LedgerEntry, LedgerState, assign
    from schema_mapping.formats import register
    from schema_mapping.protobuf.descriptors import MessageSchema, SourceSchema, UnionSchema
    from schema_mapping.protobuf.message_mapping import MessageMapping, compile_mapping
    from schema_mapping.protobuf.union_mapping import UnionMapping
    from schema_mapping.raw_mapping import RawMapping
    from schema_mapping.row import RowMapping
    from schema_mapping.value_format import DeclaredSchema, ValueFormat, ValueMapping, ValueSchema

__all__ = [
    "Assignment",
    "ColumnIds",
    "DeclaredSchema",
    "LedgerEntry",
    "LedgerState",
    "MappingOptions",
    "MessageMapping",
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
    "columns.ids": ("ColumnIds",),
    "formats": ("register",),
    "protobuf.message_mapping": ("MessageMapping", "compile_mapping"),
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
