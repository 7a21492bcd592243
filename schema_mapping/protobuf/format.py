"""Protobuf as a value format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from schema_mapping.columns.docs import Comments
from schema_mapping.columns.graph import ColumnGraph
from schema_mapping.columns.ids import ColumnIds
from schema_mapping.columns.ledger import LedgerEntry, Root
from schema_mapping.columns.options import MappingOptions
from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.comments import read_comments
from schema_mapping.protobuf.descriptors import PROTOBUF_FORMAT, UNION_FORMAT, SourceSchema, UnionSchema
from schema_mapping.protobuf.message_columns import message_columns
from schema_mapping.protobuf.message_mapping import (
    MessageMapping,
    compile_source,
    load_encoder,
    message_from_json,
)
from schema_mapping.protobuf.type_graph import TypeGraph, source_graph
from schema_mapping.protobuf.union_graph import member_steps, unite
from schema_mapping.protobuf.union_mapping import MemberType, UnionMapping, compile_union, union_from_json
from schema_mapping.protobuf.well_known import with_native_columns
from schema_mapping.value_format import DeclaredSchema, ValueSchema


@dataclass(frozen=True, slots=True)
class ProtobufMessageFormat:
    name: str = PROTOBUF_FORMAT

    def read(self, schema: DeclaredSchema, entries: Iterable[LedgerEntry], root: Root) -> ValueSchema:  # noqa: ARG002
        """Raises DescriptorError."""
        if not isinstance(schema, SourceSchema):
            raise DescriptorError("the schema isn't one of a Protobuf message", root=root, schema=type(schema).__name__)
        return _OneMessage(source=schema, graph=source_graph(schema))

    def mapping(self, data: Mapping[str, Any]) -> MessageMapping:
        return message_from_json(data)

    def load_encoder(self) -> None:
        load_encoder()


@dataclass(frozen=True, slots=True)
class ProtobufMessagesFormat:
    """An envelope names a value's type."""

    name: str = UNION_FORMAT

    def read(self, schema: DeclaredSchema, entries: Iterable[LedgerEntry], root: Root) -> ValueSchema:
        """Under the ledger's steps. Raises DescriptorError."""
        if not isinstance(schema, UnionSchema):
            raise DescriptorError("the schema isn't one of several messages", root=root, schema=type(schema).__name__)
        return _several(schema, entries, root)

    def mapping(self, data: Mapping[str, Any]) -> UnionMapping:
        return union_from_json(data)

    def load_encoder(self) -> None:
        load_encoder()


PROTOBUF: Final = ProtobufMessageFormat()
PROTOBUF_MESSAGES: Final = ProtobufMessagesFormat()


@dataclass(frozen=True, kw_only=True)
class _Messages:
    graph: TypeGraph

    def fingerprint(self) -> str:
        return self.graph.fingerprint()

    def columns(self, options: MappingOptions) -> ColumnGraph:
        return message_columns(with_native_columns(self.graph, options))


@dataclass(frozen=True, kw_only=True)
class _OneMessage(_Messages):
    source: SourceSchema

    def comments(self) -> Comments:
        return read_comments(self.source)

    def compile(self, ids: ColumnIds, options: MappingOptions, *, keep_raw: bool) -> MessageMapping:
        return compile_source(self.source, ids, keep_raw, options)


@dataclass(frozen=True, kw_only=True)
class _SeveralMessages(_Messages):
    sources: Mapping[int, SourceSchema]
    members: Mapping[int, MemberType]
    keys: Mapping[int, Mapping[str, str]]

    def comments(self) -> Comments:
        return {
            (self.keys[step].get(message, message), number): text
            for step, source in self.sources.items()
            for (message, number), text in read_comments(source).items()
        }

    def compile(self, ids: ColumnIds, options: MappingOptions, *, keep_raw: bool) -> UnionMapping:
        return compile_union(self.members, ids=ids, keep_raw=keep_raw, options=options)


def _several(schema: UnionSchema, entries: Iterable[LedgerEntry], root: Root) -> _SeveralMessages:
    by_name = {member.message: member for member in schema.members}
    if not by_name or len(by_name) != len(schema.members):
        raise DescriptorError("several message types must be named, each once", messages=tuple(by_name))
    steps = member_steps(entries, root, by_name)
    sources = {steps[name]: member for name, member in by_name.items()}
    members = {step: MemberType.of_schema(source) for step, source in sources.items()}
    united = unite({step: member.graph for step, member in members.items()})
    return _SeveralMessages(sources=sources, members=members, keys=united.keys, graph=united.graph)
