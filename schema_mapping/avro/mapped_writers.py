"""Writers with columns and ids, for the kernel's tables."""

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
    """`types` are the writers', newest first. `renamed` has renamed fields' steps."""

    types: tuple[AvroTypes, ...]
    columns: WriterColumns
    renamed: Renamed
    graph: ColumnGraph
    ids: ColumnIds
    arrow_type: pa.StructType
    keep_raw: bool
