"""The kernel's columns, in the order of the Arrow type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa

from schema_mapping import names
from schema_mapping.columns.graph import ColumnGraph, Held, ListOf, MapOf, StructOf
from schema_mapping.columns.ids import ColumnId, ColumnIds
from schema_mapping.columns.paths import Path
from schema_mapping.columns.shape import ROOT_SPECIALS
from schema_mapping.columns.types import AnyColumnType, ColumnType
from schema_mapping.errors import DescriptorError
from schema_mapping.kernel.growing import COLUMNS

ROOT_SPACE: Final = 0
NO_COLUMN: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarOutput:
    output: int
    type: pa.DataType
    column: AnyColumnType


@dataclass(frozen=True, slots=True, kw_only=True)
class StructOutput:
    """`output` is the validity. `whole` is a cut struct's column of bytes."""

    output: int
    type: pa.StructType
    struct: str
    fields: Mapping[str, AnyOutput]
    children: tuple[AnyOutput, ...]
    whole: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOutput:
    """`output` is its offsets. Elements are in the row space `space`."""

    output: int
    type: pa.ListType
    space: int
    element: AnyOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOutput:
    """`output` is its offsets. Entries are in the row space `space`."""

    output: int
    type: pa.MapType
    space: int
    key: ScalarOutput
    value: AnyOutput


AnyOutput: TypeAlias = ScalarOutput | StructOutput | ListOutput | MapOutput


@dataclass(slots=True)
class OutputColumns:
    """Also the bytes of a row of each space."""

    columns: list[tuple[int, int, int]] = field(default_factory=list)
    row_bytes: list[int] = field(default_factory=lambda: [0])
    map_spaces: list[int] = field(default_factory=list)
    specials: dict[int, int] = field(default_factory=dict)

    def add_root(self, graph: ColumnGraph, ids: ColumnIds, arrow_type: pa.StructType) -> StructOutput:
        """Columns added to the root are in `specials`, by step."""
        return _Layout(self, graph, ids.by_path()).struct(graph.root, arrow_type, (), ROOT_SPACE)

    def add(self, kind: str, space: int, width: int = 0) -> int:
        """`width` is for numbers and byte strings of one size."""
        self.columns.append((COLUMNS[kind], space, width))
        self.row_bytes[space] += max(width, 4)
        return len(self.columns) - 1

    def add_space(self) -> int:
        self.row_bytes.append(0)
        return len(self.row_bytes) - 1


@dataclass(frozen=True, slots=True)
class _Layout:
    outputs: OutputColumns
    graph: ColumnGraph
    ids: Mapping[Path, ColumnId]

    def of(self, holds: Held, kind: pa.DataType, path: Path, space: int) -> AnyOutput:
        match holds:
            case StructOf(name):
                return self.struct(name, kind, path, space)
            case ListOf(element):
                output, inner = self.outputs.add("LIST", space), self.outputs.add_space()
                child = self.of(element, kind.value_type, (*path, names.ELEMENT_STEP), inner)
                return ListOutput(output=output, type=kind, space=inner, element=child)
            case MapOf(_, value):
                output, inner = self.outputs.add("LIST", space), self.outputs.add_space()
                self.outputs.map_spaces.append(inner)
                key = self._scalar(ColumnType.STRING, kind.key_type, inner)
                child = self.of(value, kind.item_type, (*path, names.MAP_VALUE_STEP), inner)
                return MapOutput(output=output, type=kind, space=inner, key=key, value=child)
            case scalar:
                return self._scalar(scalar, kind, space)

    def struct(self, name: str, kind: pa.StructType, path: Path, space: int) -> StructOutput:
        output = self.outputs.add("BITS", space)
        fields: dict[str, AnyOutput] = {}
        is_cut = bool(path) and self.ids[path].cut
        if not is_cut:
            for at, member in enumerate(self.graph.structs[name]):
                step = str(member.step)
                if (*path, step) not in self.ids:
                    raise DescriptorError("the ids given lack a column of the schema", path=(*path, step))
                fields[step] = self.of(member.held, kind.field(at).type, (*path, member.step), space)
        specials = ROOT_SPECIALS if not path else (names.UNRECOGNIZED_STEP,)
        added = {
            step: self._scalar(ColumnType.BINARY, kind.field(len(fields) + at).type, space)
            for at, step in enumerate(specials)
        }
        if not path:
            self.outputs.specials.update({step: column.output for step, column in added.items()})
        return StructOutput(
            output=output,
            type=kind,
            struct=name,
            fields=fields,
            children=(*fields.values(), *added.values()),
            whole=added[names.UNRECOGNIZED_STEP].output if is_cut else None,
        )

    def _scalar(self, column: AnyColumnType, kind: pa.DataType, space: int) -> ScalarOutput:
        return ScalarOutput(output=self._add(kind, space), type=kind, column=column)

    def _add(self, kind: pa.DataType, space: int) -> int:
        storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        if pa.types.is_boolean(storage):
            return self.outputs.add("BOOLEAN", space)
        if pa.types.is_string(storage) or pa.types.is_binary(storage):
            return self.outputs.add("BYTES", space)
        return self.outputs.add("NUMBERS", space, storage.byte_width)
