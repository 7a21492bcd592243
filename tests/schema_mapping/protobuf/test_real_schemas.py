"""Published schemas compile."""

from __future__ import annotations

import gc
import time

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from schema_mapping import MappingOptions, compile_mapping
from schema_mapping.columns.expansion import CutReason
from schema_mapping.protobuf.mapped_messages import MappedField, MappedMessage
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.real_schemas import PACKAGES, messages

SAMPLE = 60
EXPECTED = {
    "googleapis-common-protos-1.76.0": 141,
    "gtfs-realtime-bindings-3.0.0": 28,
    "opentelemetry-proto-1.45.2": 60,
    "perfetto-0.59.1": 1020,
    "perfetto-more-0.59.1": 323,
    "xds-protos-1.85.0": 2480,
}


def named(package: str, name: str) -> MessageMapping:
    full = next(item for item in PACKAGES if item.rpartition("-")[0] == package)
    return compile_mapping(messages(full)[name])


def check(package: str, name: str) -> None:
    mapping = compile_mapping(messages(package)[name])
    ids = [column.field_id for column in mapping.ids.columns]
    assert sorted(ids) == list(range(1, len(ids) + 1)), name
    assert _leaves(mapping.root) + 3 <= MappingOptions().max_columns or _only_its_own_fields(mapping), name
    shuffled = compile_mapping(messages(package, shuffled=True)[name])
    assert shuffled.ids == mapping.ids, name
    assert shuffled.fingerprint == mapping.fingerprint, name


def _leaves(message: MappedMessage) -> int:
    return 1 + sum(_field_leaves(field) for field in message.fields)


def _field_leaves(field: MappedField) -> int:
    if field.key is not None and field.value is not None:
        return 1 + _field_leaves(field.value)
    return _leaves(field.message) if field.message is not None else 1


def _only_its_own_fields(mapping: MessageMapping) -> bool:
    return all(field.message is None for field in mapping.root.fields)


def test_all_packages_are_there() -> None:
    assert {package: len(messages(package)) for package in PACKAGES} == EXPECTED


@pytest.mark.parametrize("package", PACKAGES)
def test_a_sample_of_every_package(package: str) -> None:
    names = list(messages(package))
    for name in names[:: max(1, len(names) // SAMPLE)]:
        check(package, name)


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_every_message(package: str) -> None:
    for name in messages(package):
        check(package, name)


@pytest.mark.parametrize(
    ("package", "name"),
    [("xds-protos", "envoy.config.bootstrap.v3.Bootstrap"), ("perfetto", "perfetto.protos.TracePacket")],
)
def test_the_largest_are_cut_and_say_where(package: str, name: str) -> None:
    mapping = named(package, name)
    assert _leaves(mapping.root) + 3 <= MappingOptions().max_columns
    assert {cut.reason for cut in mapping.cuts} >= {CutReason.COLUMNS}
    columns = mapping.ids.by_path()
    assert {cut.path for cut in mapping.cuts} == {path for path, column in columns.items() if column.cut}
    assert len({cut.column for cut in mapping.cuts}) == len(mapping.cuts)


def test_a_doubling_graph_of_30_levels_compiles_in_no_time() -> None:
    file = FileDescriptorProto(name="d.proto", package="d", syntax="proto3")
    for level in range(30):
        made = DescriptorProto(name=f"L{level}")
        for number in (1, 2):
            field = made.field.add(name=f"f{number}", number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            field.type = FieldDescriptorProto.TYPE_MESSAGE if level < 29 else FieldDescriptorProto.TYPE_INT64
            if level < 29:
                field.type_name = f".d.L{level + 1}"
        file.message_type.append(made)
    pool = DescriptorPool()
    pool.Add(file)
    gc.collect()
    gc.freeze()  # a collection during the compilation would also walk through what all earlier tests left
    try:
        started = time.process_time()
        mapping = compile_mapping(pool.FindMessageTypeByName("d.L0"))
        assert time.process_time() - started < 1.0
    finally:
        gc.unfreeze()
    assert _leaves(mapping.root) + 3 <= MappingOptions().max_columns
    assert mapping.cuts
