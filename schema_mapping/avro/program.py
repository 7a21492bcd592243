"""Compiles writers to the kernel's tables.

Nodes fill columns, or only check bytes if there is no column or the struct is cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schema_mapping import names
from schema_mapping.avro.kernel.tables import Tables
from schema_mapping.avro.mapped_writers import MappedWriters
from schema_mapping.avro.symbol_tables import SymbolTables
from schema_mapping.avro.writer_nodes import NodeEntry, WriterNodes
from schema_mapping.columns.outputs import OutputColumns, StructOutput

VALUE_MEMORY: Final = 1 << 30
BLOCKS_100_SIZED: Final = "blocks_100_sized"
"""The `__form__` of values whose arrays and maps are blocks of 100 items with sizes, as Go's hamba/avro writes them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WriterPrograms:
    """`value_memory` limits the bytes of one value's rows."""

    tables: Tables
    root: StructOutput
    outputs: OutputColumns
    writers: int
    value_memory: int = VALUE_MEMORY

    @property
    def arrow_type(self) -> pa.StructType:
        return self.root.type


def compile_programs(writers: MappedWriters) -> WriterPrograms:
    outputs = OutputColumns()
    root = outputs.add_root(writers.graph, writers.ids, writers.arrow_type)
    symbols = SymbolTables()
    nodes: list[NodeEntry] = []
    programs = [WriterNodes(writers, number, nodes, symbols).add_root(root) for number in range(len(writers.types))]
    arrays = {
        "nodes": _nodes(nodes),
        "columns": np.array([tuple(column) for column in outputs.columns], dtype=_COLUMN),
        "programs": np.array(programs, dtype=np.int32),
        "row_bytes": np.array(outputs.row_bytes, dtype=np.int64),
        "map_spaces": np.array(outputs.map_spaces, dtype=np.int32),
        **symbols.arrays(form_texts(len(programs))),
    }
    special = {names.STEP_NAMES[step].strip("_"): output for step, output in outputs.specials.items()}
    tables = Tables(arrays, specials={"row": root.output, **special}, keep_raw=writers.keep_raw)
    return WriterPrograms(tables=tables, root=root, outputs=outputs, writers=len(programs))


def form_texts(writers: int) -> tuple[str, ...]:
    """The canonical form and sized blocks, by writer. The newest one's first is ""."""
    named = [f"writer_{number}" if number else "" for number in range(writers)]
    return tuple(form for name in named for form in (name, "_".join(filter(None, (name, BLOCKS_100_SIZED)))))


_NODE: Final = np.dtype([(name, np.int32) for name in NodeEntry.__annotations__])
_COLUMN: Final = np.dtype([(name, np.int32) for name in ("kind", "space", "width")])


def _nodes(rows: Iterable[NodeEntry]) -> npt.NDArray[Any]:
    return np.array([row.values for row in rows], dtype=_NODE)
