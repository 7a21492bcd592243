"""The mapping of several message types: a row has at most one of the structs.

The caller passes types, read from envelopes, to `decode`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schema_mapping import names
from schema_mapping.columns.expansion import find_cuts
from schema_mapping.columns.ids import ColumnIds
from schema_mapping.columns.options import MappingOptions
from schema_mapping.errors import KernelError
from schema_mapping.protobuf.compiled import CompiledColumns
from schema_mapping.protobuf.descriptors import UNION_FORMAT, SourceSchema, UnionSchema, closure, find_descriptor
from schema_mapping.protobuf.mapped_messages import map_message
from schema_mapping.protobuf.message_columns import message_columns
from schema_mapping.protobuf.message_mapping import mapping_fingerprint
from schema_mapping.protobuf.type_graph import TypeGraph, source_graph
from schema_mapping.protobuf.union_graph import unite
from schema_mapping.protobuf.well_known import with_native_columns
from schema_mapping.value_format import NOT_ONE

if TYPE_CHECKING:
    from schema_mapping.protobuf.program import Program
    from schema_mapping.value_format import Lengths, Places

_SPECIALS = (names.PREFIX, names.RAW, names.ERR, names.FORM)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionMember:
    step: int
    schema: SourceSchema


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class UnionMapping(CompiledColumns):
    """`members` ascend by step, like their structs."""

    members: tuple[UnionMember, ...]

    @property
    def takes_dictionaries(self) -> bool:
        """Rows are first sorted by message."""
        return False

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(member.schema.message for member in self.members)

    def schema(self, envelope: bytes | None) -> UnionSchema:  # noqa: ARG002 - see `UnionSchema.envelope`
        return UnionSchema(members=tuple(member.schema for member in self.members))

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        from schema_mapping.protobuf.program import compile_program

        roots = [field.message for field in self.root.fields if field.message is not None]
        assert len(roots) == len(self.members)
        return tuple(compile_program(root, self.root_ids, keep_raw=self.keep_raw, graph=self.graph) for root in roots)

    def decode(
        self, values: pa.BinaryArray, *, which: Places | None = None, prefix_lengths: Lengths | None = None
    ) -> pa.StructArray:
        """Raises KernelError also without `which`."""
        from schema_mapping.protobuf.decode import decode

        if which is None:
            raise KernelError("nothing says which of the messages each value is", messages=self.messages)
        decoded: dict[int, pa.StructArray] = {}
        for member_index in np.unique(which[which != NOT_ONE]).tolist():
            mine = which == member_index
            own = values if mine.all() else pc.if_else(pa.array(mine), values, pa.scalar(None, values.type))
            lengths = None if prefix_lengths is None else np.where(mine, prefix_lengths, 0).astype(np.int32)
            decoded[member_index] = decode(own, self.programs[member_index], prefix_lengths=lengths)
        return self._join(decoded, len(values))

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        """Raises KernelError for rows of another type, and without `__raw__` for rows with other than one message."""
        from schema_mapping.protobuf.encode import encode

        if [field.name for field in rows.type] != [field.name for field in self.arrow_type]:
            raise KernelError(
                "rows to encode don't have the mapping's type", found=str(rows.type), wanted=str(self.arrow_type)
            )
        raw = rows.field(names.RAW)
        result = pc.if_else(rows.is_valid(), raw, pa.scalar(None, raw.type))
        waiting = rows.is_valid().to_numpy(zero_copy_only=False) & ~raw.is_valid().to_numpy(zero_copy_only=False)
        messages = np.zeros(len(rows), dtype=np.int16)
        for member_index, program in enumerate(self.programs):
            struct = rows.field(member_index)
            mine = waiting & struct.is_valid().to_numpy(zero_copy_only=False)
            if mine.any():
                messages += mine
                result = _coalesced([result, encode(_of_member(rows, struct, mine, program), program)])
        if (waiting & (messages != 1)).any():
            row = int(np.argmax(waiting & (messages != 1)))
            raise KernelError("a row has not exactly one of the messages", row=row, messages=self.messages)
        return result

    def shown(self, values: pa.BinaryArray, rows: pa.StructArray) -> pa.StructArray:
        from schema_mapping.protobuf.json_values import shown_messages

        which: list[int | None] = [None] * len(rows)
        for member_index in range(len(self.members)):
            for row in np.flatnonzero(rows.field(member_index).is_valid().to_numpy(zero_copy_only=False)).tolist():
                which[row] = member_index
        return shown_messages(tuple(member.schema for member in self.members), values, rows, which)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": UNION_FORMAT,
            "messages": [{"step": member.step, **member.schema.to_json()} for member in self.members],
            "keep_raw": self.keep_raw,
            "options": self.options.to_json(),
            "columns": self.ids.to_json(),
        }

    def __repr__(self) -> str:
        return f"UnionMapping({', '.join(self.messages)}, fingerprint={self.fingerprint[:12]})"

    def __reduce__(self) -> tuple[Callable[..., UnionMapping], tuple[object, ...]]:
        return _rebuild, (self.members, self.ids, self.keep_raw, self.options)

    def _join(self, found: Mapping[int, pa.StructArray], count: int) -> pa.StructArray:
        fields = list(self.arrow_type)
        columns = [
            _message_column(found[member_index], fields[member_index].type)
            if member_index in found
            else pa.nulls(count, fields[member_index].type)
            for member_index in range(len(self.members))
        ]
        for field in fields[len(columns) : -1]:
            parts = [rows.field(field.name) for rows in found.values()]
            columns.append(_coalesced(parts) if parts else pa.nulls(count, field.type))
        columns.append(pa.nulls(count, fields[-1].type))
        valid = np.zeros(count, dtype=bool)
        for rows in found.values():
            valid |= rows.is_valid().to_numpy(zero_copy_only=False)
        return pa.StructArray.from_arrays(columns, fields=fields, mask=pa.array(~valid))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberType:
    schema: SourceSchema
    graph: TypeGraph

    @classmethod
    def of_schema(cls, schema: SourceSchema) -> Self:
        """Raises DescriptorError if the schema can't be read."""
        graph = source_graph(schema)
        return cls(schema=closure(find_descriptor(schema), schema.extensions), graph=graph)


def compile_union(
    members: Mapping[int, MemberType], *, ids: ColumnIds, keep_raw: bool, options: MappingOptions
) -> UnionMapping:
    """`members` are by step. Raises DescriptorError if the ids belong to other types."""
    graph = unite({step: member.graph for step, member in members.items()}).graph
    native = with_native_columns(graph, options)
    root, root_ids = map_message(native, ids)
    return UnionMapping(
        members=tuple(UnionMember(step=step, schema=member.schema) for step, member in sorted(members.items())),
        ids=ids,
        keep_raw=keep_raw,
        options=options,
        fingerprint=mapping_fingerprint(graph, options),
        root=root,
        root_ids=root_ids,
        cuts=find_cuts(message_columns(native), ids, options),
        graph=graph,
    )


def union_from_json(data: Mapping[str, Any]) -> UnionMapping:
    members = tuple(
        UnionMember(step=member["step"], schema=SourceSchema.from_json(member)) for member in data["messages"]
    )
    ids, options = ColumnIds.from_json(data["columns"]), MappingOptions.from_json(data["options"])
    return _rebuild(members, ids, data["keep_raw"], options)


@lru_cache(maxsize=64)
def _rebuild(members: tuple[UnionMember, ...], ids: ColumnIds, keep_raw: bool, options: MappingOptions) -> UnionMapping:
    types = {member.step: MemberType.of_schema(member.schema) for member in members}
    return compile_union(types, ids=ids, keep_raw=keep_raw, options=options)


def _message_column(rows: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    valid = rows.is_valid().to_numpy(zero_copy_only=False)
    good = valid & ~rows.field(names.ERR).is_valid().to_numpy(zero_copy_only=False)
    children = [rows.field(field.name) for field in kind]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=pa.array(~good))


def _of_member(rows: pa.StructArray, struct: pa.StructArray, mine: npt.NDArray[np.bool_], program: Program) -> pa.Array:
    fields = list(program.arrow_type)
    specials = {name: rows.field(name) for name in _SPECIALS}
    columns = [
        specials[field.name] if field.name in specials else struct.field(struct.type.get_field_index(field.name))
        for field in fields
    ]
    typed = [pa.field(field.name, column.type) for field, column in zip(fields, columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=typed, mask=pa.array(~mine))


def _coalesced(parts: list[pa.Array]) -> pa.Array:
    if len(parts) == 1:
        return parts[0]
    if any(pa.types.is_large_binary(part.type) for part in parts):
        parts = [part.cast(pa.large_binary()) for part in parts]
    return pc.coalesce(*parts)
