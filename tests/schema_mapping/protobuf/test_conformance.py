"""Google's conformance payloads."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from google.protobuf.internal import api_implementation
from google.protobuf.message import Message

from schema_mapping import compile_mapping
from tests.conformance.suite import Payload, descriptor, read_payloads
from tests.support.schemas.kernel_check import NATIVE, check_values
from tests.support.schemas.upb_judge import parse

COUNTS = {
    "protobuf_test_messages.editions.TestAllTypesEdition2023": 8,
    "protobuf_test_messages.editions.proto2.TestAllTypesProto2": 486,
    "protobuf_test_messages.editions.proto3.TestAllTypesProto3": 504,
    "protobuf_test_messages.proto2.TestAllTypesProto2": 491,
    "protobuf_test_messages.proto3.TestAllTypesProto3": 504,
}
MALFORMED = 648


def payloads(message: str) -> list[Payload]:
    result = [payload for payload in read_payloads() if payload.message == message]
    random.Random(7).shuffle(result)
    return result


def test_every_payload_is_here() -> None:
    kept = read_payloads()
    assert {message: len(payloads(message)) for message in {error.message for error in kept}} == COUNTS
    assert sum(not item.accepted for item in kept) == MALFORMED


@pytest.mark.parametrize("message", COUNTS)
def test_err_is_set_exactly_where_upb_refuses(message: str) -> None:
    assert api_implementation.Type() == "upb"
    sent = payloads(message)
    mapping = compile_mapping(descriptor(message))
    rows = mapping.decode(pa.array([item.data for item in sent], pa.binary()))
    assert mapping.encode(rows).to_pylist() == [item.data for item in sent]
    assert rows.field("__err__").is_null().to_pylist() == [item.accepted for item in sent]
    assert [item.accepted for item in sent] == [parse(descriptor(message), item.data) is not None for item in sent]


@pytest.mark.parametrize("message", COUNTS)
def test_columns_are_what_upb_reads(message: str) -> None:
    # upb knows the extensions of its pool, which are unknown fields to a mapping.
    values = [
        payload.data for payload in payloads(message) if not has_extensions(parse(descriptor(message), payload.data))
    ]
    assert len(values) >= COUNTS[message] - 3
    for options in (None, NATIVE):
        check_values(descriptor(message), [None, *values, None], options=options)


def has_extensions(message: Message | None) -> bool:
    return message is not None and any(field.is_extension for field, _ in message.ListFields())
