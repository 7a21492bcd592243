"""Published schemas against upb."""

from __future__ import annotations

import importlib

import pytest
from google.protobuf.descriptor import Descriptor

from schema_mapping.protobuf.descriptors import closure, find_descriptor
from tests.support.schemas.kernel_check import NATIVE, check_upb_is_canonical, check_values
from tests.support.schemas.random_choices import SeededChoices
from tests.support.schemas.random_payloads import random_payload

MODULES = (
    "google.api.annotations_pb2",
    "google.api.http_pb2",
    "google.protobuf.any_pb2",
    "google.protobuf.api_pb2",
    "google.protobuf.compiler.plugin_pb2",
    "google.protobuf.struct_pb2",
    "google.protobuf.type_pb2",
    "google.protobuf.wrappers_pb2",
    "google.rpc.context.attribute_context_pb2",
    "pyspark.sql.connect.proto.base_pb2",
    "pyspark.sql.connect.proto.catalog_pb2",
    "pyspark.sql.connect.proto.relations_pb2",
)
MESSAGES = (
    ("google.protobuf.struct_pb2", "Value"),
    ("google.protobuf.descriptor_pb2", "FileDescriptorSet"),
    ("google.rpc.context.attribute_context_pb2", "AttributeContext"),
    ("pyspark.sql.connect.proto.base_pb2", "Plan"),
    ("pyspark.sql.connect.proto.expressions_pb2", "Expression"),
)


def alone(module: str, message: str) -> Descriptor:
    descriptor = importlib.import_module(module).DESCRIPTOR.message_types_by_name[message]
    return find_descriptor(closure(descriptor))


def test_files_that_protoc_wrote() -> None:
    files = [importlib.import_module(name).DESCRIPTOR.serialized_pb for name in MODULES]
    descriptor = alone("google.protobuf.descriptor_pb2", "FileDescriptorProto")
    check_values(descriptor, [*files, None, files[0][:-1]])
    check_upb_is_canonical(descriptor, files)


@pytest.mark.parametrize(("module", "message"), MESSAGES, ids=[message for _, message in MESSAGES])
def test_random_bytes(module: str, message: str) -> None:
    descriptor = alone(module, message)
    choices = SeededChoices(11)
    values = [random_payload(choices, descriptor) for _ in range(60)]
    for options in (None, NATIVE):
        check_values(descriptor, values, options=options)
        check_upb_is_canonical(descriptor, values, options=options)
