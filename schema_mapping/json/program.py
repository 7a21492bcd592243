"""Compiles types to the kernel's tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from schema_mapping import names
from schema_mapping.columns.graph import ColumnGraph
from schema_mapping.columns.ids import ColumnIds
from schema_mapping.columns.outputs import OutputColumns, StructOutput
from schema_mapping.json.kernel.tables import Tables
from schema_mapping.json.nodes import NodeTables
from schema_mapping.json.types import JsonType

VALUE_MEMORY: Final = 1 << 30
MOST_FORMS: Final = 4_096
"""Forms of the values that are decoded together. The values of further forms are kept raw."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JsonProgram:
    """`value_memory` limits the bytes of one value's rows."""

    tables: Tables
    root: StructOutput
    keep_raw: bool
    value_memory: int = VALUE_MEMORY
    most_forms: int = MOST_FORMS

    @property
    def arrow_type(self) -> pa.StructType:
        return self.root.type


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedTypes:
    types: JsonType
    graph: ColumnGraph
    ids: ColumnIds
    arrow_type: pa.StructType
    keep_raw: bool


def compile_program(mapped: MappedTypes) -> JsonProgram:
    outputs = OutputColumns()
    root = outputs.add_root(mapped.graph, mapped.ids, mapped.arrow_type)
    nodes = NodeTables()
    first = nodes.add_root(mapped.types, root, outputs.specials[names.UNRECOGNIZED_STEP])
    column = np.dtype([(name, np.int32) for name in ("kind", "space", "width")])
    arrays = {
        **nodes.arrays(),
        "columns": np.array([tuple(entry) for entry in outputs.columns], dtype=column),
        "row_bytes": np.array(outputs.row_bytes, dtype=np.int64),
        "map_spaces": np.array(outputs.map_spaces, dtype=np.int32),
    }
    special = {names.STEP_NAMES[step].strip("_"): output for step, output in outputs.specials.items()}
    tables = Tables(arrays, specials={"row": root.output, **special}, root=first, keep_raw=mapped.keep_raw)
    return JsonProgram(tables=tables, root=root, keep_raw=mapped.keep_raw)
