"""What the bytes mean: Protobuf schemas as Iceberg types with stable field ids, and the kernel between them."""

from schema_mapping.descriptors import SourceSchema
from schema_mapping.field_ids import Assignment, LedgerEntry, LedgerState, assign
from schema_mapping.ids import IdAssignment
from schema_mapping.mapping import Mapping, RawMapping, compile_mapping
from schema_mapping.options import MappingOptions
from schema_mapping.row import RowMapping

__all__ = [
    "Assignment",
    "IdAssignment",
    "LedgerEntry",
    "LedgerState",
    "Mapping",
    "MappingOptions",
    "RawMapping",
    "RowMapping",
    "SourceSchema",
    "assign",
    "compile_mapping",
]
