"""The mapping of one message type. Picklable, hashable, equal by its sources."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import Descriptor

from schema_mapping.columns.evolution import first_ids
from schema_mapping.columns.expansion import find_cuts
from schema_mapping.columns.ids import ColumnIds
from schema_mapping.columns.options import MappingOptions
from schema_mapping.protobuf.compiled import CompiledColumns
from schema_mapping.protobuf.descriptors import PROTOBUF_FORMAT, SourceSchema, closure, find_descriptor
from schema_mapping.protobuf.mapped_messages import MappedMessage, map_message
from schema_mapping.protobuf.message_columns import message_columns
from schema_mapping.protobuf.type_graph import TypeGraph, source_graph, type_graph
from schema_mapping.protobuf.well_known import with_native_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from schema_mapping.protobuf.program import Program
    from schema_mapping.value_format import Lengths, Places


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MessageMapping(CompiledColumns):
    """The columns of one message type, and the codec."""

    descriptor_set: bytes
    message: str
    extensions: tuple[str, ...] = ()

    @property
    def source(self) -> SourceSchema:
        return SourceSchema(descriptor_set=self.descriptor_set, message=self.message, extensions=self.extensions)

    @property
    def takes_dictionaries(self) -> bool:
        return True

    @property
    def messages(self) -> tuple[str, ...]:
        return (self.message,)

    @cached_property
    def required_ids(self) -> frozenset[int]:
        return frozenset(_required_ids(self.root))

    def schema(self, envelope: bytes | None) -> SourceSchema:
        return replace(self.source, envelope=envelope)

    @cached_property
    def program(self) -> Program:
        from schema_mapping.protobuf.program import compile_program

        return compile_program(self.root, self.root_ids, keep_raw=self.keep_raw, graph=self.graph)

    def decode(
        self,
        values: pa.Array | pa.ChunkedArray,
        *,
        which: Places | None = None,  # noqa: ARG002 - there is one message; a value that is none is null
        prefix_lengths: Lengths | None = None,
    ) -> pa.StructArray:
        from schema_mapping.protobuf.decode import decode

        return decode(values, self.program, prefix_lengths=prefix_lengths)

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        """Raises KernelError for rows of another type."""
        from schema_mapping.protobuf.encode import encode

        return encode(rows, self.program)

    def shown(self, values: pa.BinaryArray, rows: pa.StructArray) -> pa.StructArray:
        from schema_mapping.protobuf.json_values import shown_messages

        return shown_messages((self.source,), values, rows, [0] * len(values))

    def to_json(self) -> dict[str, Any]:
        return {
            "format": PROTOBUF_FORMAT,
            **self.source.to_json(),
            "keep_raw": self.keep_raw,
            "options": self.options.to_json(),
            "columns": self.ids.to_json(),
        }

    def __repr__(self) -> str:
        return f"MessageMapping({self.message}, fingerprint={self.fingerprint[:12]}, columns={len(self.ids.columns)})"

    def __reduce__(self) -> tuple[Callable[..., MessageMapping], tuple[object, ...]]:
        return compile_source, (self.source, self.ids, self.keep_raw, self.options)


def _required_ids(message: MappedMessage) -> Iterator[int]:
    for field in message.fields:
        if field.required:
            yield field.field_id
        inner = field.value if field.value is not None else field
        if inner.message is not None:
            yield from _required_ids(inner.message)


def compile_mapping(
    descriptor: Descriptor,
    *,
    ids: ColumnIds | None = None,
    keep_raw: bool = False,
    options: MappingOptions | None = None,
    extensions: Sequence[str] = (),
) -> MessageMapping:
    """Compile a message type. Without a ledger's `ids`, they start at 1.

    `extensions` of the pool become columns. Raises DescriptorError for another message's ids, too many fields, or a
    missing extension.
    """
    return _compile(
        descriptor,
        type_graph(descriptor, extensions),
        ids=ids,
        keep_raw=keep_raw,
        options=options or MappingOptions(),
        extensions=tuple(extensions),
    )


def _compile(
    descriptor: Descriptor,
    graph: TypeGraph,
    *,
    ids: ColumnIds | None,
    keep_raw: bool,
    options: MappingOptions,
    extensions: tuple[str, ...],
) -> MessageMapping:
    source = closure(descriptor, extensions)
    native = with_native_columns(graph, options)
    columns = message_columns(native)
    ids = ids or first_ids(columns, options)
    root, root_ids = map_message(native, ids)
    return MessageMapping(
        descriptor_set=source.descriptor_set,
        message=source.message,
        ids=ids,
        keep_raw=keep_raw,
        options=options,
        fingerprint=mapping_fingerprint(graph, options),
        root=root,
        root_ids=root_ids,
        cuts=find_cuts(columns, ids, options),
        graph=graph,
        extensions=source.extensions,
    )


def mapping_fingerprint(graph: TypeGraph, options: MappingOptions) -> str:
    text = json.dumps([graph.fingerprint(), options.to_json()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def message_from_json(data: Mapping[str, Any]) -> MessageMapping:
    ids, options = ColumnIds.from_json(data["columns"]), MappingOptions.from_json(data["options"])
    return compile_source(SourceSchema.from_json(data), ids, data["keep_raw"], options)


@lru_cache(maxsize=64)
def compile_source(source: SourceSchema, ids: ColumnIds, keep_raw: bool, options: MappingOptions) -> MessageMapping:
    """Raises the errors of `compile_mapping`."""
    return _compile(
        find_descriptor(source),
        source_graph(source),
        ids=ids,
        keep_raw=keep_raw,
        options=options,
        extensions=source.extensions,
    )


def load_encoder() -> None:
    from schema_mapping.protobuf.encode import encode  # noqa: F401
