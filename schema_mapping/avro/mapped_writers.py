"""The writers of a mapping with their columns and ids: what the kernel's tables are compiled from."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from schema_mapping.avro.ledger_steps import Renamed
from schema_mapping.avro.types import AvroTypes
from schema_mapping.avro.writer_columns import WriterColumns
from schema_mapping.columns.graph import ColumnGraph
from schema_mapping.columns.ids import ColumnIds


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedWriters:
    """The types of each writer, the newest first, and the columns of all. `renamed` has the steps of renamed fields."""

    types: tuple[AvroTypes, ...]
    columns: WriterColumns
    renamed: Renamed
    graph: ColumnGraph
    ids: ColumnIds
    arrow_type: pa.StructType
    keep_raw: bool
