"""Published extensions as columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto

from schema_mapping import compile_mapping
from schema_mapping.protobuf.descriptors import extensions_of
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.kernel_check import check_values
from tests.support.schemas.random_choices import SeededChoices
from tests.support.schemas.random_payloads import random_payload
from tests.support.schemas.real_schemas import messages, protos

PACKAGES = ("googleapis-common-protos-1.76.0", "xds-protos-1.85.0")
MOST_VALUES = 300


@cache
def extensions(package: str) -> dict[str, list[str]]:
    result: defaultdict[str, list[str]] = defaultdict(list)
    for file in protos(package).values():
        for name, extension in extensions_of(file):
            result[extension.extendee.removeprefix(".")].append(name)
    return result


def mapped(package: str, extendee: str) -> MessageMapping:
    pool = next(iter(messages(package).values())).file.pool
    return compile_mapping(pool.FindMessageTypeByName(extendee), extensions=extensions(package)[extendee])


def options(package: str) -> Iterator[Any]:
    for file in protos(package).values():
        yield file.options
        for service in file.service:
            yield service.options
            yield from (method.options for method in service.method)
        pending: list[DescriptorProto] = list(file.message_type)
        while pending:
            message = pending.pop()
            pending.extend(message.nested_type)
            yield message.options
            yield from (item.options for item in (*message.field, *message.extension, *message.oneof_decl))
        yield from (value.options for enum in file.enum_type for value in enum.value)


CASES = [(package, extendee) for package in PACKAGES for extendee in sorted(extensions(package))]


@pytest.mark.parametrize(("package", "extendee"), CASES, ids=[f"{value}-{package[:3]}" for package, value in CASES])
def test_extensions_of_real_schemas(package: str, extendee: str) -> None:
    mapping = mapped(package, extendee)
    names = {field.extension for field in mapping.graph.types[extendee].fields}
    assert names >= set(extensions(package)[extendee])
    pool = next(iter(messages(package).values())).file.pool
    descriptor = pool.FindMessageTypeByName(extendee)
    real = {option.SerializeToString() for option in options(package) if option.DESCRIPTOR.full_name == extendee}
    choices = SeededChoices(3)
    values = [*sorted(real, key=len)[-MOST_VALUES:], *(random_payload(choices, descriptor) for _ in range(20))]
    check_values(descriptor, values, mapping=mapping)


def test_a_real_option_is_a_column() -> None:
    mapping = mapped("googleapis-common-protos-1.76.0", "google.protobuf.MethodOptions")
    values = sorted(
        option.SerializeToString()
        for option in options("googleapis-common-protos-1.76.0")
        if option.DESCRIPTOR.name == "MethodOptions" and option.ByteSize()
    )
    rows = mapping.decode(pa.array(values)).to_pylist()
    gets = {row["http"]["get"] for row in rows if row["http"] is not None}
    assert "/v1/{name=operations/**}" in gets
    assert [row["__raw__"] for row in rows] == [None] * len(rows)
