"""Compiles a message to the kernel's tables."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from schema_mapping.protobuf.arrow_types import root_type
from schema_mapping.protobuf.kernel.tables import Tables
from schema_mapping.protobuf.layout import StructLayout
from schema_mapping.protobuf.mapped_messages import MappedMessage, RootIds
from schema_mapping.protobuf.table_builder import TableBuilder
from schema_mapping.protobuf.type_graph import TypeGraph

VALUE_MEMORY = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """`chunk_rows` values are parsed at a time; 0: the kernel chooses.

    `value_memory` limits the bytes of a value's rows: two bytes can open hundreds of columns.
    """

    tables: Tables
    arrow_type: pa.StructType
    layout: StructLayout
    chunk_rows: int = 0
    value_memory: int = VALUE_MEMORY


def compile_program(
    root: MappedMessage, root_ids: RootIds, *, keep_raw: bool, graph: TypeGraph | None = None
) -> Program:
    """With `graph`, cut messages are checked as by upb, else only their wire format."""
    arrow_type = root_type(root, root_ids)
    builder = TableBuilder(graph)
    layout = builder.add_root(root, arrow_type)
    return Program(tables=builder.tables(keep_raw=keep_raw), arrow_type=arrow_type, layout=layout)
