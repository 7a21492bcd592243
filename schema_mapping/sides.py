"""A topic's key or value while its columns are assigned: the types it has, their comments, and the mapping to be made.

Whatever the schema is, one message type or several, evolution sees one graph of types.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from typing import Protocol, assert_never

from schema_mapping.comments import Comments, read_comments
from schema_mapping.descriptors import MessageSchema, SourceSchema, UnionSchema
from schema_mapping.errors import DescriptorError
from schema_mapping.ids import IdAssignment
from schema_mapping.ledger import LedgerState, Root
from schema_mapping.mapping import Mapping, compile_source
from schema_mapping.options import MappingOptions
from schema_mapping.type_graph import TypeGraph, source_graph
from schema_mapping.union import member_steps, unite
from schema_mapping.union_mapping import MemberType, UnionMapping, compile_union


class Side(Protocol):
    """What assignment asks of a key's or value's schema."""

    @property
    def graph(self) -> TypeGraph:
        """The message types."""

    def comments(self) -> Comments:
        """Comments of fields, by the graph's keys of their messages."""

    def compile(self, ids: IdAssignment, options: MappingOptions, *, keep_raw: bool) -> Mapping | UnionMapping:
        """The mapping with these columns."""


def read_side(schema: MessageSchema, state: LedgerState, root: Root) -> Side:
    """The schema of `root` as the ledger's table has it. Raises DescriptorError for one that can't be read."""
    match schema:
        case SourceSchema():
            return _one(schema)
        case UnionSchema():
            return _several(schema, state, root)
        case _ as never:
            assert_never(never)


@dataclass(frozen=True, kw_only=True)
class _OneMessage:
    source: SourceSchema
    graph: TypeGraph

    def comments(self) -> Comments:
        return read_comments(self.source)

    def compile(self, ids: IdAssignment, options: MappingOptions, *, keep_raw: bool) -> Mapping:
        return compile_source(self.source, ids, keep_raw, options)


@dataclass(frozen=True, kw_only=True)
class _SeveralMessages:
    sources: MappingOf[int, SourceSchema]
    members: MappingOf[int, MemberType]
    keys: MappingOf[int, MappingOf[str, str]]
    graph: TypeGraph

    def comments(self) -> Comments:
        return {
            (self.keys[step].get(message, message), number): text
            for step, source in self.sources.items()
            for (message, number), text in read_comments(source).items()
        }

    def compile(self, ids: IdAssignment, options: MappingOptions, *, keep_raw: bool) -> UnionMapping:
        return compile_union(self.members, ids=ids, keep_raw=keep_raw, options=options)


def _one(source: SourceSchema) -> _OneMessage:
    return _OneMessage(source=source, graph=source_graph(source))


def _several(schema: UnionSchema, state: LedgerState, root: Root) -> _SeveralMessages:
    by_name = {member.message: member for member in schema.members}
    if not by_name or len(by_name) != len(schema.members):
        raise DescriptorError("several message types must be named, each once", messages=tuple(by_name))
    steps = member_steps(state.entries, root, by_name)
    sources = {steps[name]: member for name, member in by_name.items()}
    members = {step: MemberType.of(source) for step, source in sources.items()}
    united = unite({step: member.graph for step, member in members.items()})
    return _SeveralMessages(sources=sources, members=members, keys=united.keys, graph=united.graph)
