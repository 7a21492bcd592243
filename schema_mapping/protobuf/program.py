"""Compiles a mapped message to the flat tables that the kernel interprets, and the layout of its output."""

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
    """The input of `decode` and `encode`: the C tables, the Arrow type of rows, and the layout of its columns.

    `chunk_rows` values are parsed before their columns are gathered; 0 lets the kernel choose. `value_memory` limits
    the bytes of the rows that one value may open, because two bytes can open a row of hundreds of columns.
    """

    tables: Tables
    arrow_type: pa.StructType
    layout: StructLayout
    chunk_rows: int = 0
    value_memory: int = VALUE_MEMORY


def compile_program(
    root: MappedMessage, root_ids: RootIds, *, keep_raw: bool, graph: TypeGraph | None = None
) -> Program:
    """The program of a mapped message; with `keep_raw`, `__raw__` is set for every value.

    With the `graph` of the source schema, cut messages are checked by their types, as upb does; without it, only their
    outer wire format.
    """
    arrow_type = root_type(root, root_ids)
    builder = TableBuilder(graph)
    layout = builder.add_root(root, arrow_type)
    return Program(tables=builder.tables(keep_raw=keep_raw), arrow_type=arrow_type, layout=layout)
