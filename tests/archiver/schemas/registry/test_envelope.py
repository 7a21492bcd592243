"""Envelopes of columns, by confluent-kafka's rules."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from archiver.schemas.protobuf.message_choice import OTHER_MESSAGE, MessageChoice, parse_indexes, write_envelope
from archiver.schemas.protobuf.registered_schema import Indexes
from archiver.schemas.registry.envelope import (
    BAD_ENVELOPE,
    BAD_HEADER,
    FOREIGN_HEADER,
    UNKNOWN_SCHEMA_ID,
    RegistryEnvelopes,
)
from archiver.wire.columns import RECORDS
from catalog.model import SchemaIdentity, SchemaNumber
from tests.support.schemas.protobuf_bytes import varint


class Ids:
    def __init__(self) -> None:
        self.asked = 0

    def messages(self, schema_id: SchemaNumber, indexes: Indexes) -> frozenset[str] | None:
        self.asked += 1
        number = schema_id.int if isinstance(schema_id, UUID) else schema_id
        if not 1 <= number <= 9:
            return None
        return frozenset({"m.M"} if indexes in {(0,), (1, 2)} else {"m.Other"})

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        return {SchemaIdentity(number): b"" for number in schema_ids}

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> Ids:
        del schemas
        return self


def zigzag(number: int) -> bytes:
    return varint((number << 1) ^ (number >> 63))


def envelope(schema_id: int, *indexes: int) -> bytes:
    """Write indexes as serializers do: a single 0 stands for the first message."""
    tail = b"\0" if indexes in {(0,), ()} else zigzag(len(indexes)) + b"".join(map(zigzag, indexes))
    return b"\0" + schema_id.to_bytes(4, "big") + tail


def guid_envelope(number: int, *indexes: int) -> bytes:
    return b"\1" + number.to_bytes(16, "big") + envelope(number, *indexes)[5:]


def read(values: list[bytes | None], kind: pa.DataType | None = None) -> list[tuple[int, str | None]]:
    column = pa.array([b"padding", *values, b"padding"], kind or pa.binary()).slice(1, len(values))
    envelopes = RegistryEnvelopes(choice=MessageChoice(messages=("m.M",), ids=Ids())).read(column)
    codes: list[str | None] = [None] * len(values)
    for code, places in envelopes.errors.items():
        for at in np.flatnonzero(places):
            codes[at] = code
    return list(zip(envelopes.lengths.tolist(), codes, strict=True))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_every_fate(kind: pa.DataType) -> None:
    assert read(
        [
            envelope(1) + b"hello",
            None,
            envelope(2, 1, 2),
            envelope(1, 1) + b"x",
            envelope(10) + b"x",
            b"",
            b"\0",
            b"\0\0\0\0\1",
            b"\1" + envelope(1)[1:],
            envelope(1, 0)[:5] + zigzag(1) + zigzag(0) + b"long form",
            envelope(1)[:5] + b"\xff" * 6,
            envelope(1)[:5] + zigzag(-1),
            envelope(1)[:5] + zigzag(1) + zigzag(-3),
            envelope(1)[:5] + zigzag(2) + zigzag(1),
        ],
        kind,
    ) == [
        (6, None),
        (0, None),
        (8, None),
        (0, OTHER_MESSAGE),
        (0, UNKNOWN_SCHEMA_ID),
        *[(0, BAD_ENVELOPE)] * 4,
        (7, None),
        *[(0, BAD_ENVELOPE)] * 4,
    ]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_guids_in_payloads(kind: pa.DataType) -> None:
    assert read(
        [
            guid_envelope(1) + b"hello",
            envelope(1) + b"id",
            guid_envelope(9, 1, 2),
            guid_envelope(1, 1) + b"x",
            guid_envelope(10) + b"x",
            guid_envelope(1)[:17],
            guid_envelope(1)[:3],
            b"\1",
            b"\2" + guid_envelope(1)[1:],
            guid_envelope(1)[:17] + zigzag(-1),
        ],
        kind,
    ) == [
        (18, None),
        (6, None),
        (20, None),
        (0, "other_message@17"),
        (0, "unknown_schema_guid@1"),
        *[(0, BAD_ENVELOPE)] * 5,
    ]


def test_bytes_that_are_no_guid_are_not_looked_up() -> None:
    ids = Ids()
    values = [b"\1" + bytes([at]) * 16 + b"\xff" * 9 for at in range(200)]
    reader = RegistryEnvelopes(choice=MessageChoice(messages=("m.M",), ids=ids))
    assert reader.read(pa.array(values)).errors[BAD_ENVELOPE].all()
    assert ids.asked == 0


class FileIds(Ids):
    def messages(self, schema_id: SchemaNumber, indexes: Indexes) -> frozenset[str]:
        del schema_id
        names = {(0,): "A", (0, 0): "A.N", (0, 0, 0, 0): "A.N.Z.Y", (1,): "B", (1, 0): "B.N"}
        return frozenset({names[indexes]} if indexes in names else ())


PLAIN_CASES = [
    # indexes, messages of the topic, the envelope's length, message or error
    ("02 02", "A B", 7, "B"),
    ("01 01", "A B", 7, "B"),
    ("01 00", "A B", 7, "A"),
    ("02 01 00", "A B.N", 8, "B.N"),
    ("00", "A", 6, "A"),
    ("02 00 00", "A A.N", 7, "A"),  # both ways: today's meaning stays
    ("02 02 00", "A B", 7, "B"),
    ("04 00 00 00 00", "A A.N A.N.Z.Y", 8, "A.N"),
    ("04 00 00 00 00", "A A.N.Z.Y", 0, "other_message@5"),  # names a message, which the topic doesn't list
    ("01 05", "A B", 0, BAD_ENVELOPE),
    ("01 01", "A", 0, BAD_ENVELOPE),
    ("01", "A", 0, BAD_ENVELOPE),
    ("03 00 00", "A", 0, BAD_ENVELOPE),
    ("02 08 00", "A B", 0, "other_message@5"),
    ("81 00 01", "A B", 8, "B"),
    ("02 81 00 00", "A B.N", 9, "B.N"),
    ("82 00 01 00", "A B.N", 9, "B.N"),
    ("01 80 00", "A B", 8, "A"),
    ("05 00 00 00 00 00", "A", 0, BAD_ENVELOPE),
    ("04 00 00", "A A.N", 8, "A.N"),  # the plain reading has too few bytes
    ("02 00 01", "A B.N", 7, "A"),  # 01 is the value's
    ("02 01 01", "A B.N", 0, BAD_ENVELOPE),  # neither names a message
    ("01 02", "A B", 0, BAD_ENVELOPE),
    ("81 80 00 01", "A B", 9, "B"),  # a number of three bytes
]


@pytest.mark.parametrize(("indexes", "messages", "length", "fate"), PLAIN_CASES)
def test_indexes_that_are_not_zigzag(indexes: str, messages: str, length: int, fate: str) -> None:
    listed = tuple(messages.split())
    value = b"\0\0\0\0\1" + bytes.fromhex(indexes)
    envelopes = RegistryEnvelopes(choice=MessageChoice(messages=listed, ids=FileIds())).read(pa.array([value] * 3))
    fates = [*envelopes.errors] or [listed[envelopes.which[0]]]
    assert (envelopes.lengths.tolist(), fates) == ([length] * 3, [fate])


def header_lists(rows: list[list[tuple[bytes, bytes | None]]]) -> pa.ListArray:
    lists = [[{"key": key, "value": value} for key, value in row] for row in [[(b"padding", b"x")], *rows]]
    return pa.array(lists, RECORDS.field("headers").type).slice(1)


NAME = b"__value_schema_id"


@pytest.mark.parametrize("coerce", [False, True])
def test_a_header_wins_over_the_payload(coerce: bool) -> None:
    cases: list[tuple[list[tuple[bytes, bytes | None]], bytes | None, tuple[int, int, str | None]]] = [
        ([(NAME, guid_envelope(1))], b"bare", (0, 0, None)),
        ([(NAME, envelope(1))], b"bare", (0, 0, None)),
        ([(NAME, guid_envelope(2, 1, 2))], envelope(1) + b"x", (0, 0, None)),
        ([(NAME, guid_envelope(1, 1))], envelope(1), (0, -1, "other_message@17")),
        ([(NAME, envelope(1, 1))], envelope(1), (0, -1, "other_message@5")),
        ([(NAME, guid_envelope(70))], envelope(1), (0, -1, "unknown_schema_guid@1")),
        ([(NAME, envelope(70))], envelope(1), (0, -1, "unknown_schema_id@1")),
        ([(NAME, guid_envelope(1) + b"more")], b"", (0, 0, None)),
        ([(NAME, b"")], envelope(1), (0, -1, BAD_HEADER)),
        ([(NAME, guid_envelope(1)[:17])], envelope(1), (0, -1, BAD_HEADER)),
        ([(NAME, b"\2" * 20)], envelope(1), (0, -1, BAD_HEADER)),
        ([(NAME, envelope(1)[:5] + zigzag(-1))], envelope(1), (0, -1, BAD_HEADER)),
        ([(NAME, guid_envelope(70)), (NAME, guid_envelope(1))], b"bare", (0, 0, None)),
        ([(NAME, guid_envelope(1)), (b"x", b"y"), (NAME, guid_envelope(70))], b"", (0, -1, "unknown_schema_guid@1")),
        ([(NAME, guid_envelope(70)), (NAME, None)], envelope(1) + b"x", (6, 0, None)),
        ([(NAME, None)], envelope(1), (6, 0, None)),
        ([(NAME, guid_envelope(1))], None, (0, -1, None)),
        ([(b"__key_schema_id", guid_envelope(70))], envelope(2), (6, 0, None)),
        ([(b"__value_schema_iD", guid_envelope(70))], guid_envelope(2), (18, 0, None)),
        ([(b"__Value_Schema_Id", guid_envelope(70)), (b"", b"")], envelope(2), (6, 0, None)),
        ([], envelope(2), (6, 0, None)),
    ]
    values = pa.array([value for _, value, _ in cases])
    reader = RegistryEnvelopes(choice=MessageChoice(messages=("m.M",), ids=Ids()), coerce=coerce)
    envelopes = reader.read(values, header_lists([headers for headers, _, _ in cases]))
    errors: list[str | None] = [None] * len(cases)
    for code, places in envelopes.errors.items():
        for at in np.flatnonzero(places):
            errors[at] = code
    assert list(zip(envelopes.lengths.tolist(), envelopes.which.tolist(), errors, strict=True)) == [
        case for *_, case in cases
    ]
    assert envelopes.bare is None or not envelopes.bare.any()
    assert envelopes.schema_ids == {1, 2, UUID(int=1), UUID(int=2)}


FOREIGN = (b"apicurio.value.globalId", (5).to_bytes(8, "big"))


@pytest.mark.parametrize("coerce", [False, True])
def test_values_with_headers_of_another_registry_are_not_coerced(coerce: bool) -> None:
    cases: list[tuple[list[tuple[bytes, bytes | None]], bytes | None, tuple[int, str | None]]] = [
        ([FOREIGN], b"\x08\7", (-1, FOREIGN_HEADER if coerce else BAD_ENVELOPE)),
        ([(b"apicurio.value.artifactId", None)], b"", (-1, FOREIGN_HEADER if coerce else BAD_ENVELOPE)),
        ([(b"x", b"y"), (b"apicurio.value.", b"")], b"m", (-1, FOREIGN_HEADER if coerce else BAD_ENVELOPE)),
        ([FOREIGN], envelope(1), (0, None)),
        ([FOREIGN], b"\0", (-1, BAD_ENVELOPE)),
        ([FOREIGN, (NAME, guid_envelope(1))], b"m", (0, None)),
        ([FOREIGN], None, (-1, None)),
        ([(b"apicurio.key.globalId", b"5")], b"m", (0, None) if coerce else (-1, BAD_ENVELOPE)),
        ([(b"apicurio.value", b"5")], b"m", (0, None) if coerce else (-1, BAD_ENVELOPE)),
    ]
    reader = RegistryEnvelopes(choice=MessageChoice(messages=("m.M",), ids=Ids()), coerce=coerce)
    envelopes = reader.read(
        pa.array([value for _, value, _ in cases]), header_lists([headers for headers, _, _ in cases])
    )
    errors = {int(at): code for code, places in envelopes.errors.items() for at in np.flatnonzero(places)}
    assert [(index, errors.get(at)) for at, index in enumerate(envelopes.which.tolist())] == [
        case for *_, case in cases
    ]
    if coerce:
        assert envelopes.bare is not None
        assert np.flatnonzero(envelopes.bare).tolist() == [7, 8]


def test_a_null_payload_is_not_looked_up() -> None:
    ids = Ids()
    reader = RegistryEnvelopes(choice=MessageChoice(messages=("m.M",), ids=ids))
    reader.read(pa.nulls(2, pa.binary()), header_lists([[(NAME, guid_envelope(1))]] * 2))
    assert ids.asked == 0


def test_headers_of_a_column_are_read_once() -> None:
    ids = Ids()
    reader = RegistryEnvelopes(choice=MessageChoice(messages=("m.M",), ids=ids))
    headers = header_lists([[(b"trace", b"1"), (NAME, guid_envelope(1 + at % 2))] for at in range(5_000)])
    envelopes = reader.read(pa.array([b"m"] * 5_000), headers)
    assert ids.asked == 2
    assert (envelopes.which == 0).all()


def test_nothing_to_read() -> None:
    assert read([]) == []
    assert read([None, None]) == [(0, None)] * 2
    assert RegistryEnvelopes(choice=MessageChoice(messages=("m.M",), ids=Ids())).read(
        pa.nulls(3, pa.binary())
    ).lengths.tolist() == [0, 0, 0]


def test_a_column_asks_once_for_each_envelope() -> None:
    ids = Ids()
    values = pa.array([envelope(3) + bytes([at % 7]) for at in range(10_000)] + [envelope(99)] * 500)
    envelopes = RegistryEnvelopes(choice=MessageChoice(messages=("m.M",), ids=ids)).read(values)
    assert ids.asked == 2
    assert int((envelopes.lengths == 6).sum()) == 10_000


@pytest.mark.parametrize("seed", range(20))
def test_against_reading_one_by_one(seed: int) -> None:
    draw = random.Random(seed)
    values: list[bytes | None] = []
    for _ in range(400):
        path = [draw.randrange(3) for _ in range(draw.randrange(4))]
        value = envelope(draw.choice((1, 2, 2, 2, 30, 1 << 31)), *path) + draw.randbytes(draw.randrange(9))
        if draw.random() < 0.2:
            value = value[: draw.randrange(len(value) + 1)]
        if draw.random() < 0.1:
            value = value[:5] + draw.randbytes(3)
        values.append(None if draw.random() < 0.05 else value)
    ids = Ids()
    for value, (length, code) in zip(values, read(values), strict=True):
        if value is None or len(value) < 6 or value[0] != 0:
            assert (length, code) == (0, None if value is None else BAD_ENVELOPE)
            continue
        parsed = parse_indexes(value)
        names = ids.messages(int.from_bytes(value[1:5], "big"), parsed[0] if parsed else ())
        if names is None:
            assert code == UNKNOWN_SCHEMA_ID or (parsed is None and code == BAD_ENVELOPE)
        elif parsed is None:
            plain = parse_indexes(value, zigzag=False)
            is_older = plain is not None and "m.M" in (ids.messages(1, plain[0]) or ())
            assert (length, code) == ((plain[1], None) if plain and is_older else (0, BAD_ENVELOPE))
        else:
            assert (length, code) == ((parsed[1], None) if "m.M" in names else (0, OTHER_MESSAGE))


@pytest.mark.parametrize("indexes", [(0,), (1,), (0, 0), (3, 2, 1), (200, 0)])
def test_writing_envelopes(indexes: Indexes) -> None:
    written = write_envelope(70_000, indexes)
    assert written == envelope(70_000, *indexes)
    assert parse_indexes(written + b"more") == (indexes, len(written))
