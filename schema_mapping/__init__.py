"""What the bytes mean: Protobuf schemas as Iceberg types with stable field ids, and the kernel between them."""

from schema_mapping.descriptors import MessageSchema, SourceSchema, UnionSchema
from schema_mapping.field_ids import Assignment, LedgerEntry, LedgerState, assign
from schema_mapping.ids import IdAssignment
from schema_mapping.mapping import Mapping, RawMapping, compile_mapping
from schema_mapping.options import MappingOptions
from schema_mapping.row import AnyMapping, RowMapping
from schema_mapping.union_mapping import UnionMapping

__all__ = [
    "AnyMapping",
    "Assignment",
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
    "assign",
    "compile_mapping",
]
