"""The mapping of JSON values. Picklable, hashable, equal by its sources."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from schema_mapping.columns.arrow import arrow_struct
from schema_mapping.columns.expansion import CutStruct, find_cuts
from schema_mapping.columns.graph import ColumnGraph
from schema_mapping.columns.ids import ColumnIds
from schema_mapping.columns.options import MappingOptions
from schema_mapping.columns.paths import Path
from schema_mapping.json.json_columns import JsonColumns
from schema_mapping.json.schema import JSON_FORMAT, JsonSchema, types_of
from schema_mapping.names import UNRECOGNIZED_STEP
from schema_mapping.value_format import DeclaredField, ExcludedField, Lengths, Places

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.types import StructType

    from schema_mapping.json.program import JsonProgram


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class JsonMapping:
    """`fingerprint` is SHA-256 over types and options, not ids."""

    types: str
    name: str
    ids: ColumnIds
    options: MappingOptions
    keep_raw: bool

    @cached_property
    def fingerprint(self) -> str:
        text = json.dumps([JSON_FORMAT, self.types, self.name, self.options.to_json()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def messages(self) -> tuple[str, ...]:
        return (self.name,)

    @cached_property
    def columns(self) -> JsonColumns:
        return JsonColumns.of(types_of(self.types))

    @property
    def graph(self) -> ColumnGraph:
        return self.columns.graph

    @cached_property
    def cuts(self) -> tuple[CutStruct, ...]:
        return find_cuts(self.graph, self.ids, self.options)

    @property
    def column_ids(self) -> frozenset[int]:
        return frozenset(column.field_id for column in self.ids.columns)

    @cached_property
    def unknown_ids(self) -> frozenset[int]:
        """`__unrecognized__` of structs that aren't cut: their unknown members."""
        cut = {cut.path for cut in self.cuts}
        return frozenset(
            column.field_id
            for column in self.ids.columns
            if column.path[-1] == UNRECOGNIZED_STEP and column.path[:-1] not in cut
        )

    @cached_property
    def arrow_type(self) -> pa.StructType:
        return arrow_struct(self.graph, self.ids)

    @cached_property
    def iceberg_type(self) -> StructType:
        from schema_mapping.columns.iceberg import iceberg_struct

        return iceberg_struct(self.arrow_type)

    @property
    def takes_dictionaries(self) -> bool:
        return False

    @cached_property
    def program(self) -> JsonProgram:
        from schema_mapping.json.program import MappedTypes, compile_program

        return compile_program(
            MappedTypes(
                types=types_of(self.types),
                graph=self.graph,
                ids=self.ids,
                arrow_type=self.arrow_type,
                keep_raw=self.keep_raw,
            )
        )

    def decode(
        self, values: pa.BinaryArray, *, which: Places | None = None, prefix_lengths: Lengths | None = None
    ) -> pa.StructArray:
        from schema_mapping.json.decode import decode

        return decode(values, self.program, which=which, prefix_lengths=prefix_lengths)

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        """Raises KernelError for rows of another type."""
        from schema_mapping.json.encode import encode

        return encode(rows, self.program)

    def shown(self, values: pa.BinaryArray, rows: pa.StructArray) -> pa.StructArray:
        from schema_mapping.json.shown_values import shown_values

        return shown_values(self.name, values, rows)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": JSON_FORMAT,
            "types": json.loads(self.types),
            "name": self.name,
            "keep_raw": self.keep_raw,
            "options": self.options.to_json(),
            "columns": self.ids.to_json(),
        }

    def schema(self, envelope: bytes | None) -> JsonSchema:
        return JsonSchema(types=self.types, name=self.name, envelope=envelope)

    def declared(self, path: Path) -> DeclaredField:
        return self.columns.declared(path)

    def excluded(self, path: Path) -> tuple[ExcludedField, ...]:  # noqa: ARG002 - the format has no such option
        return ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JsonMapping):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.types, self.name, self.options, self.keep_raw, self.ids

    def __repr__(self) -> str:
        return f"JsonMapping({self.name}, fingerprint={self.fingerprint[:12]}, columns={len(self.ids.columns)})"

    def __reduce__(self) -> tuple[Callable[..., JsonMapping], tuple[object, ...]]:
        return compiled, self._identity


@lru_cache(maxsize=64)
def compiled(types: str, name: str, options: MappingOptions, keep_raw: bool, ids: ColumnIds) -> JsonMapping:
    """Raises DescriptorError if the ids belong to other types."""
    mapping = JsonMapping(types=types, name=name, ids=ids, options=options, keep_raw=keep_raw)
    _ = mapping.arrow_type
    return mapping


def mapping_from_json(data: Mapping[str, Any]) -> JsonMapping:
    """Raises the errors of `compiled`."""
    return compiled(
        json.dumps(data["types"], separators=(",", ":")),
        data["name"],
        MappingOptions.from_json(data["options"]),
        data["keep_raw"],
        ColumnIds.from_json(data["columns"]),
    )
