"""Fuzz target: Protobuf values between two good ones, against upb.

The first two bytes choose schema and action. Refused exactly if upb refuses, every byte back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2, struct_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from schema_mapping import MappingOptions, MessageMapping, compile_mapping
from schema_mapping.protobuf.decode import decode
from schema_mapping.protobuf.descriptors import SourceSchema, closure, find_descriptor
from tests.conformance import suite
from tests.fuzz.choices import FuzzedChoices
from tests.fuzz.exact import exact_binary
from tests.producers import content as producers
from tests.support.schemas.column_choices import excluding, with_extensions
from tests.support.schemas.kernel_check import TOGETHER, names_field_zero
from tests.support.schemas.random_choices import SeededChoices
from tests.support.schemas.random_payloads import random_payload
from tests.support.schemas.random_schemas import random_schema
from tests.support.schemas.upb_judge import columns_in, columns_of, parse

GENERATED, COLUMNS, TINY_CHUNKS, ENVELOPE, LARGE, FORMS, SCALARS = 1, 2, 4, 8, 16, 32, 64
RANDOM_SCHEMAS = 56
CHOSEN_SCHEMAS = 12
DEPTHS = (24, 1, 2, 3)
PREFIX = b"\0\0\0\0\7"


@dataclass(frozen=True, slots=True)
class Schema:
    judge: Descriptor
    made: Descriptor
    mapped: Descriptor
    extensions: tuple[str, ...] = ()

    @classmethod
    def of(cls, descriptor: Descriptor) -> Self:
        return cls(descriptor, descriptor, descriptor)


@dataclass(frozen=True, slots=True)
class Subject:
    """`is_careful`: `__raw__` may be set without need, for NaNs and fields without a column."""

    schema: Schema
    mapping: MessageMapping
    neighbours: tuple[bytes, bytes]
    rows: tuple[pa.StructArray, pa.StructArray]
    is_careful: bool


def known(descriptor: Descriptor) -> Callable[[], Descriptor]:
    def load() -> Descriptor:
        source = closure(descriptor)
        files = FileDescriptorSet.FromString(source.descriptor_set)
        for file in files.file:
            file.ClearField("extension")
            pending = list(file.message_type)
            while pending:
                message = pending.pop()
                message.ClearField("extension")
                pending.extend(message.nested_type)
        return find_descriptor(SourceSchema(descriptor_set=files.SerializeToString(), message=source.message))

    return load


SUITE = (
    "protobuf_test_messages.proto2.TestAllTypesProto2",
    "protobuf_test_messages.proto3.TestAllTypesProto3",
    "protobuf_test_messages.editions.TestAllTypesEdition2023",
    "protobuf_test_messages.editions.proto2.TestAllTypesProto2",
    "protobuf_test_messages.editions.proto3.TestAllTypesProto3",
)
WHOLE: tuple[Callable[[], Descriptor], ...] = (
    *(known(suite.descriptor(name)) for name in SUITE),
    known(descriptor_pb2.FileDescriptorProto.DESCRIPTOR),
    known(struct_pb2.Value.DESCRIPTOR),
    *((lambda seed=seed: random_schema(SeededChoices(seed))) for seed in range(RANDOM_SCHEMAS)),
    *((lambda message=message: producers.descriptor(message)) for message in producers.COUNTS),
)


def with_excluded(seed: int) -> Schema:
    choices = SeededChoices(seed)
    schema = excluding(choices, random_schema(choices), displaced=True)
    return Schema(judge=schema.rest, made=schema.whole, mapped=schema.marked)


def with_extended(seed: int) -> Schema:
    choices = SeededChoices(seed)
    plain = random_schema(choices)
    schema, names = with_extensions(choices, plain)
    reached, pool = compile_mapping(schema).graph.types, schema.file.pool
    named = (name for name in names if pool.FindExtensionByName(name).containing_type.full_name in reached)
    return Schema(judge=schema, made=plain, mapped=schema, extensions=tuple(named))


FAMILY: tuple[Callable[[], Schema], ...] = (
    *((lambda load=load: Schema.of(load())) for load in WHOLE),
    *((lambda seed=seed: with_excluded(seed)) for seed in range(CHOSEN_SCHEMAS)),
    *((lambda seed=seed: with_extended(seed)) for seed in range(CHOSEN_SCHEMAS)),
)


@cache
def subject(index: int, *, scalars: bool) -> Subject:
    """`scalars`: well-known types and similar have one column."""
    schema = FAMILY[index]()
    limits = MappingOptions(max_depth=DEPTHS[index % len(DEPTHS)])
    options = replace(limits, well_known_types="native", uint64="decimal") if scalars else limits
    mapping = compile_mapping(schema.mapped, extensions=schema.extensions, options=options)
    good: list[bytes] = []
    seed = 0
    while len(good) < 2:
        value = random_payload(SeededChoices(seed), schema.made)
        row = mapping.decode(pa.array([value], pa.binary()))
        if row.field("__err__")[0].as_py() is None and row.equals(row):
            good.append(value)
        seed += 1
    alone = tuple(mapping.decode(pa.array([value], pa.binary())) for value in good)
    text = str(mapping.arrow_type)
    has_excluded = any(kind.excluded for kind in mapping.graph.types.values())
    is_careful = has_excluded or "float" in text or "double" in text
    return Subject(schema, mapping, (good[0], good[1]), (alone[0], alone[1]), is_careful)


def check(octets: bytes) -> None:
    choices = FuzzedChoices(octets)
    index = choices.integer(0, 255) % len(FAMILY)
    how = choices.integer(0, 255)
    tried = subject(index, scalars=bool(how & SCALARS))
    payload = random_payload(choices, tried.schema.made) if how & GENERATED else choices.rest()
    prefix = PREFIX if how & ENVELOPE else b""
    value = prefix + payload
    values = [tried.neighbours[0], value, *([value, None] if how & FORMS else []), tried.neighbours[1], value]
    rows = decoded(tried.mapping, values, how)
    rows.validate(full=True)
    assert rows.slice(0, 1).equals(tried.rows[0]), "the value before is harmed"
    assert rows.slice(len(rows) - 2, 1).equals(tried.rows[1]), "the value after is harmed"
    assert tried.mapping.encode(rows).to_pylist() == values, "bytes are lost"
    row = rows.slice(1, 1)
    err, raw = (row.field(name)[0].as_py() for name in ("__err__", "__raw__"))
    parsed = parse(tried.schema.judge, payload)
    if err is not None:
        assert raw == value
        assert parsed is None or names_field_zero(value, err), f"upb takes it, __err__ is {err}"
        return
    assert parsed is not None, "upb refuses it"
    plain = tried.mapping.encode(without_raw(row))[0].as_py()
    together = tried.mapping.encode(without_raw(row.take(pa.array([0] * TOGETHER)))).to_pylist()
    assert together == [plain] * TOGETHER, "rows together are written otherwise than alone"
    assert raw is not None or plain == value
    assert raw is None or raw == value
    assert raw is None or plain != value or tried.is_careful, "it needn't be kept raw"
    if how & COLUMNS:
        (cells,) = row.to_pylist()
        assert columns_in(cells, tried.mapping.root, parsed) == columns_of(parsed, tried.mapping.root)


def decoded(mapping: MessageMapping, values: list[bytes | None], how: int) -> pa.StructArray:
    column = exact_binary(values, large=bool(how & LARGE))
    program = replace(mapping.program, chunk_rows=1) if how & TINY_CHUNKS else mapping.program
    if not how & ENVELOPE:
        return decode(column, program)
    # The neighbours have no envelope, every other value has.
    lengths = np.full(len(values), len(PREFIX), np.int32)
    lengths[[0, -2]] = 0
    return decode(column, program, prefix_lengths=lengths)


def without_raw(row: pa.StructArray) -> pa.StructArray:
    fields = list(row.type)
    columns = [
        pa.nulls(len(row), pa.binary()) if field.name == "__raw__" else row.field(field.name) for field in fields
    ]
    return pa.StructArray.from_arrays(columns, fields=fields)


def seeds() -> Iterator[bytes]:
    names = {name: index for index, name in enumerate(SUITE)}
    for message, data, _ in suite.read_payloads():
        yield bytes([names[message], COLUMNS]) + data
        yield bytes([names[message], COLUMNS | SCALARS]) + data
    places = {message: len(WHOLE) - len(producers.COUNTS) + number for number, message in enumerate(producers.COUNTS)}
    for producer in ("go", "prost"):
        for message, values in producers.read_vector(producer).items():
            yield from (bytes([places[message], COLUMNS]) + value for value in values[:8])
    for index in range(len(FAMILY)):
        for kind in (0, SCALARS):
            for how, value in enumerate(subject(index, scalars=kind > 0).neighbours):
                yield bytes([index, kind | COLUMNS | how * (TINY_CHUNKS | ENVELOPE | FORMS)]) + value
            yield bytes([index, kind | GENERATED | COLUMNS]) + SeededChoices(index + kind).data(200)
