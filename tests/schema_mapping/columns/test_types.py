"""Arrow and Iceberg types of columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from google.api import httpbody_pb2, service_pb2
from google.protobuf import descriptor_pb2, struct_pb2, timestamp_pb2
from google.protobuf.descriptor import Descriptor
from google.rpc.context import attribute_context_pb2
from pyiceberg.io.pyarrow import pyarrow_to_schema

from schema_mapping import LedgerState, MappingOptions, assign, compile_mapping
from schema_mapping.columns.arrow import FIELD_ID_KEY, arrow_struct
from schema_mapping.protobuf.descriptors import closure
from schema_mapping.protobuf.message_columns import message_columns
from schema_mapping.protobuf.well_known import with_native_columns
from tests.support.schemas.proto_text import descriptor_of

REAL = (
    descriptor_pb2.FileDescriptorSet.DESCRIPTOR,
    service_pb2.Service.DESCRIPTOR,
    attribute_context_pb2.AttributeContext.DESCRIPTOR,
    httpbody_pb2.HttpBody.DESCRIPTOR,
    struct_pb2.Struct.DESCRIPTOR,
    timestamp_pb2.Timestamp.DESCRIPTOR,
)

ALL_KINDS = """
double f1 = 1; float f2 = 2; int64 f3 = 3; uint64 f4 = 4; int32 f5 = 5; fixed64 f6 = 6; fixed32 f7 = 7; bool f8 = 8;
string f9 = 9; M f11 = 11; bytes f12 = 12; uint32 f13 = 13; E f14 = 14; sfixed32 f15 = 15; sfixed64 f16 = 16;
sint32 f17 = 17; sint64 f18 = 18; enum E { Z = 0; }
"""


def test_every_kind() -> None:
    mapping = compile_mapping(descriptor_of(f"message M {{ {ALL_KINDS} }}"))
    shown = {field.name: str(field.field_type) for field in mapping.iceberg_type.fields}
    ints, longs = ("f5", "f7", "f13", "f15", "f17"), ("f3", "f4", "f6", "f16", "f18")
    assert [name for name, kind in shown.items() if kind == "int"] == list(ints)
    assert [name for name, kind in shown.items() if kind == "long"] == sorted(longs, key=lambda name: int(name[1:]))
    assert (shown["f1"], shown["f2"], shown["f8"]) == ("double", "float", "boolean")
    assert (shown["f9"], shown["f12"], shown["f14"]) == ("string", "binary", "string")
    assert shown["f11"].endswith("__unrecognized__: optional binary>")


def test_layout_and_nullability() -> None:
    mapping = compile_mapping(
        descriptor_of("message M { repeated int32 b = 2; map<string, A> a = 1; } message A { int32 x = 1; }")
    )
    kind = mapping.arrow_type
    assert [field.name for field in kind] == [
        "a",
        "b",
        "__prefix__",
        "__raw__",
        "__err__",
        "__form__",
        "__unrecognized__",
    ]
    assert all(field.nullable for field in kind)
    assert not kind.field("b").type.value_field.nullable
    assert kind.field("b").type.value_field.name == "element"
    assert not kind.field("a").type.key_field.nullable
    assert kind.field("a").type.item_field.nullable
    assert [field.name for field in kind.field("a").type.item_type] == ["x", "__unrecognized__"]


@pytest.mark.parametrize("descriptor", REAL, ids=lambda case: case.full_name)
def test_pyiceberg_reads_the_same_from_the_arrow_schema(descriptor: Descriptor) -> None:
    mapping = compile_mapping(descriptor)
    judged = pyarrow_to_schema(pa.schema(list(mapping.arrow_type)))
    assert judged.as_struct() == mapping.iceberg_type
    ids = [column.field_id for column in mapping.ids.columns]
    assert sorted(ids) == list(range(1, len(ids) + 1))


@pytest.mark.parametrize("descriptor", REAL, ids=lambda case: case.full_name)
def test_a_first_versions_table_has_the_files_columns(descriptor: Descriptor) -> None:
    source = closure(descriptor)
    assigned = assign(LedgerState(), key=source, value=source)
    assert pyarrow_to_schema(assigned.row.arrow_schema).as_struct() == assigned.iceberg_schema.as_struct()


def test_the_tree_says_what_the_types_say() -> None:
    text = "message M { repeated A a = 3; map<int32, M> m = 2; A b = 9; } message A {}"
    mapping = compile_mapping(descriptor_of(text))
    by_number = {field.number: field for field in mapping.root.fields}
    assert list(by_number) == [2, 3, 9]
    assert by_number[2].value is not None
    assert by_number[2].value.is_cut
    assert not by_number[2].is_cut
    repeated, kind = by_number[3], mapping.arrow_type
    assert kind.field("a").metadata[FIELD_ID_KEY] == str(repeated.field_id).encode()
    assert kind.field("a").type.value_field.metadata[FIELD_ID_KEY] == str(repeated.element_id).encode()
    item = kind.field("m").type.item_field
    assert item.metadata[FIELD_ID_KEY] == str(by_number[2].value.field_id).encode()
    assert item.type.field(0).metadata[FIELD_ID_KEY] == str(by_number[2].value.unrecognized_id).encode()
    assert kind.field("__raw__").metadata[FIELD_ID_KEY] == str(mapping.root_ids.raw).encode()


def test_ids_are_the_same_for_shuffled_fields() -> None:
    text = "message M { int32 a = 1; repeated N n = 2; } message N { int32 x = 1; int32 y = 2; }"
    shuffled = "message N { int32 y = 2; int32 x = 1; } message M { repeated N n = 2; int32 a = 1; }"
    first, second = compile_mapping(descriptor_of(text)), compile_mapping(descriptor_of(shuffled))
    assert first == second
    assert first.arrow_type.equals(second.arrow_type, check_metadata=True)


def test_recursive_google_messages_end() -> None:
    mapping = compile_mapping(struct_pb2.Struct.DESCRIPTOR)
    assert {(cut.column, cut.message) for cut in mapping.cuts} == {
        ("fields.value.struct_value", "google.protobuf.Struct"),
        ("fields.value.list_value.values.element", "google.protobuf.Value"),
    }
    assert len(mapping.ids.columns) == 20


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("descriptor", REAL, ids=lambda case: case.name)
def test_the_graph_of_columns_says_all_that_arrow_types_need(descriptor: Descriptor, native: bool) -> None:
    chosen = MappingOptions(well_known_types="native", uint64="decimal") if native else MappingOptions(max_columns=60)
    mapping = compile_mapping(descriptor, options=chosen)
    graph = message_columns(with_native_columns(mapping.graph, chosen))
    assert arrow_struct(graph, mapping.ids).equals(mapping.arrow_type, check_metadata=True)
