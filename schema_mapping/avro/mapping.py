"""The mapping of Avro values. Picklable, hashable, equal by its sources."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from schema_mapping.avro.declared_types import declared_field
from schema_mapping.avro.ledger_steps import Renamed
from schema_mapping.avro.schema import AVRO_FORMAT, AvroSchema, message_names, normal, types_of
from schema_mapping.avro.writer_columns import WriterColumns, join_writers
from schema_mapping.columns.arrow import arrow_struct
from schema_mapping.columns.expansion import CutStruct, find_cuts
from schema_mapping.columns.graph import ColumnGraph
from schema_mapping.columns.ids import ColumnIds
from schema_mapping.columns.options import MappingOptions
from schema_mapping.columns.paths import Path
from schema_mapping.names import UNRECOGNIZED_STEP
from schema_mapping.value_format import DeclaredField, ExcludedField, Lengths, Places

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.types import StructType

    from schema_mapping.avro.program import WriterPrograms


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AvroMapping:
    """`writers` are normal texts, newest first; `renamed` has renamed fields' steps.

    `fingerprint` is SHA-256 over writers and options, not ids.
    """

    writers: tuple[str, ...]
    renamed: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    ids: ColumnIds
    options: MappingOptions
    keep_raw: bool

    @cached_property
    def fingerprint(self) -> str:
        text = json.dumps([AVRO_FORMAT, self.writers, self.options.to_json()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def messages(self) -> tuple[str, ...]:
        return message_names(self.writers)

    @cached_property
    def columns(self) -> WriterColumns:
        return joined(self.writers)

    @cached_property
    def steps(self) -> Renamed:
        return {struct: dict(steps) for struct, steps in self.renamed}

    @cached_property
    def graph(self) -> ColumnGraph:
        return self.columns.graph(self.steps)

    @cached_property
    def cuts(self) -> tuple[CutStruct, ...]:
        return find_cuts(self.graph, self.ids, self.options)

    @property
    def column_ids(self) -> frozenset[int]:
        return frozenset(column.field_id for column in self.ids.columns)

    @cached_property
    def unknown_ids(self) -> frozenset[int]:
        """`__unrecognized__` of structs that aren't cut: always null."""
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
        """Texts of enums are looked up by their bytes."""
        return False

    @cached_property
    def programs(self) -> WriterPrograms:
        from schema_mapping.avro.mapped_writers import MappedWriters
        from schema_mapping.avro.program import compile_programs

        return compile_programs(
            MappedWriters(
                types=tuple(types_of(text) for text in self.writers),
                columns=self.columns,
                renamed=self.steps,
                graph=self.graph,
                ids=self.ids,
                arrow_type=self.arrow_type,
                keep_raw=self.keep_raw,
            )
        )

    def decode(
        self, values: pa.BinaryArray, *, which: Places | None = None, prefix_lengths: Lengths | None = None
    ) -> pa.StructArray:
        """`which` are writers; the default is the newest."""
        from schema_mapping.avro.decode import decode

        return decode(values, self.programs, which=which, prefix_lengths=prefix_lengths)

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        """Raises KernelError for rows of another type."""
        from schema_mapping.avro.encode import encode

        return encode(rows, self.programs)

    def shown(self, values: pa.BinaryArray, rows: pa.StructArray) -> pa.StructArray:
        from schema_mapping.avro.json_values import shown_values

        return shown_values(self.messages, values, rows)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": AVRO_FORMAT,
            "writers": list(self.writers),
            "renamed": {struct: dict(steps) for struct, steps in self.renamed},
            "keep_raw": self.keep_raw,
            "options": self.options.to_json(),
            "columns": self.ids.to_json(),
        }

    def schema(self, envelope: bytes | None) -> AvroSchema:
        return AvroSchema(writers=self.writers, envelope=envelope)

    def declared(self, path: Path) -> DeclaredField:
        return declared_field(self.columns, self.steps, path)

    def excluded(self, path: Path) -> tuple[ExcludedField, ...]:  # noqa: ARG002 - the format has no such option
        return ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AvroMapping):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.writers, self.renamed, self.options, self.keep_raw, self.ids

    def __repr__(self) -> str:
        return f"AvroMapping({self.messages[0]}, fingerprint={self.fingerprint[:12]}, columns={len(self.ids.columns)})"

    def __reduce__(self) -> tuple[Callable[..., AvroMapping], tuple[object, ...]]:
        return compiled, self._identity


@lru_cache(maxsize=64)
def joined(writers: tuple[str, ...]) -> WriterColumns:
    return join_writers([types_of(text) for text in writers])


@lru_cache(maxsize=64)
def compiled(
    writers: tuple[str, ...],
    renamed: tuple[tuple[str, tuple[tuple[str, str], ...]], ...],
    options: MappingOptions,
    keep_raw: bool,
    ids: ColumnIds,
) -> AvroMapping:
    """Raises DescriptorError if the ids belong to other schemas."""
    mapping = AvroMapping(writers=writers, renamed=renamed, ids=ids, options=options, keep_raw=keep_raw)
    _ = mapping.arrow_type
    return mapping


def compile_avro(
    schema: AvroSchema, renamed: Renamed, ids: ColumnIds, options: MappingOptions, *, keep_raw: bool
) -> AvroMapping:
    """Raises the errors of `compiled`."""
    writers = tuple(normal(text) for text in schema.writers)
    steps = tuple((struct, tuple(sorted(names.items()))) for struct, names in sorted(renamed.items()))
    return compiled(writers, steps, options, keep_raw, ids)


def mapping_from_json(data: Mapping[str, Any]) -> AvroMapping:
    return compile_avro(
        AvroSchema.from_json(data),
        data["renamed"],
        ColumnIds.from_json(data["columns"]),
        MappingOptions.from_json(data["options"]),
        keep_raw=data["keep_raw"],
    )
