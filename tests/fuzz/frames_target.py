"""Fuzz target: frames of Kafka's clients, good or damaged, against kio's reader."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from types import NoneType
from typing import Any, cast, get_args
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader
from kio.serial.errors import DecodeError

from archiver.errors import BadRequest
from archiver.serve.kafka.apis import APIS, api_of, fallback
from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.closing_log import ClosingLog
from archiver.serve.kafka.fetch_sessions import FetchSessions
from archiver.serve.kafka.frames import LEAST_BYTES, head_of, read_rest, read_size, request_of, response_head
from archiver.serve.kafka.messages import answer, encoded
from archiver.serve.kafka.service import Client
from archiver.serve.security import OpenDoor
from tests.fuzz.choices import FuzzedChoices
from tests.support.schemas.random_choices import SeededChoices
from tests.support.servers.served_lake import framed, request, shape, written

VERSIONS = [(api.key, version) for api in APIS.values() for version in range(api.least, api.most + 1)]
CLIENT = Client(
    address="here:1",
    login=OpenDoor().session(None),
    turns=cast("ClientTurns", None),  # reading a frame needs no turn
    closing_log=ClosingLog(),
    sessions=FetchSessions(),
)

MOST_BYTES = 1 << 20
MOST_ELEMENTS = 3
MILLISECOND = timedelta(milliseconds=1)
MOST_TIME = timedelta(days=10_000)
"""kio writes longer times inexactly."""


def check(octets: bytes) -> None:
    choices = FuzzedChoices(octets)
    (_anything, _good, _spoilt, _stream, _answered)[choices.integer(0, 4)](choices)


def _anything(choices: FuzzedChoices) -> None:
    # A right head, of a known version, before any bytes; now and then of an unknown one.
    if choices.integer(0, 7):
        api_key, version = VERSIONS[choices.integer(0, len(VERSIONS) - 1)]
        _read(struct.pack(">hhi", api_key, version, 7) + choices.rest())
    else:
        _read(choices.rest())


def _good(choices: FuzzedChoices) -> None:
    message = _message(choices, load_request_schema)
    frame = framed(message, 7)
    parsed = _read(frame)
    assert parsed == message, parsed


def _spoilt(choices: FuzzedChoices) -> None:
    frame = bytearray(framed(_message(choices, load_request_schema), 7))
    for _ in range(choices.integer(1, 4)):
        frame[choices.integer(0, 1 << 16) % len(frame)] = choices.integer(0, 255)
    _read(bytes(frame[: len(frame) - choices.integer(0, 9)]))


def _read(frame: bytes) -> Any:
    if len(frame) < LEAST_BYTES:
        return None
    head = head_of(frame)
    if api_of(head) is None:
        parts = fallback(head)
        assert parts is None or all(parts)
        return None
    try:
        parsed = request_of(head, frame, CLIENT)
    except BadRequest:
        return None
    assert response_head(head)[:4] == frame[4:8]
    theirs = _theirs(head.api_key, head.version, frame)
    if getattr(parsed.body, "cursor", theirs) is None and theirs is not None:
        theirs = replace(theirs, cursor=None)  # kio takes a mark below -1 for a structure, and Kafka for none
    assert theirs in (parsed.body, None), theirs
    if abs(getattr(parsed.body, "retention_time", MILLISECOND)) < MOST_TIME:
        again = request_of(head, framed(parsed.body, 7), CLIENT).body
        assert again == parsed.body, again
    return parsed.body


def _theirs(api_key: int, version: int, frame: bytes) -> Any:
    """Return None if kio is stricter than a broker.

    It refuses unknown tags, header texts that aren't UTF-8, lengths below -1, booleans besides 0 and 1, and times
    beyond `timedelta`.
    """
    kind = load_request_schema(api_key, version)
    try:
        _, start = _reader(kind.__header_schema__)(frame, 0)
        return _reader(kind)(frame, start)[0]
    except (DecodeError, ValueError, KeyError):
        return None


def _stream(choices: FuzzedChoices) -> None:
    # Frames and their lengths, in pieces: they are cut at their ends, up to the first that is beyond the limits.
    stream = b"".join(
        struct.pack(">i", len(body) + choices.integer(-1, 1) * (choices.integer(0, 7) == 0)) + body
        for body in (choices.data(choices.integer(0, 40)) for _ in range(choices.integer(0, 4)))
    )
    stream += choices.data(choices.integer(0, 6))
    assert asyncio.run(_cut(stream, choices)) == _expected(stream)


async def _cut(stream: bytes, choices: FuzzedChoices) -> tuple[list[bytes], bool]:
    reader = asyncio.StreamReader()

    async def feed() -> None:
        at = 0
        while at < len(stream):
            size = choices.integer(1, 32)
            reader.feed_data(stream[at : at + size])
            at += size
            await asyncio.sleep(0)
        reader.feed_eof()

    feeding = asyncio.ensure_future(feed())
    frames = []
    try:
        while (size := await read_size(reader, LEAST_BYTES, MOST_BYTES, idle_seconds=10)) is not None:
            frames.append(await read_rest(reader, size, part_seconds=10, grow=_grow))
    except BadRequest:
        return frames, False
    else:
        return frames, True
    finally:
        await feeding


async def _grow(_: int) -> None: ...


def _expected(stream: bytes) -> tuple[list[bytes], bool]:
    frames = []
    while stream:
        size = int.from_bytes(stream[:4], "big", signed=True)
        if len(stream) < 4 or not LEAST_BYTES <= size <= MOST_BYTES or len(stream) < 4 + size:
            return frames, False
        frames.append(stream[4 : 4 + size])
        stream = stream[4 + size :]
    return frames, True


def _answered(choices: FuzzedChoices) -> None:
    message = _message(choices, load_response_schema)
    kind = type(message)
    again = encoded(answer(kind.__api_key__, kind.__version__, _values(message)))
    assert again == written(message)
    assert _reader(kind)(again, 0) == (message, len(again))


def _values(message: Any) -> dict[str, Any]:
    return {field.name: _value(getattr(message, field.name)) for field in fields(message)}


def _value(value: Any) -> Any:
    match value:
        case tuple():
            return [_value(item) for item in value]
        case timedelta():
            return value // MILLISECOND
        case _:
            return _values(value) if is_dataclass(value) else value


_reader = cache(entity_reader)


def _message(choices: FuzzedChoices, schema: Callable[[int, int], Any]) -> Any:
    return _entity(choices, schema(*VERSIONS[choices.integer(0, len(VERSIONS) - 1)]))


def _entity(choices: FuzzedChoices, kind: Any) -> Any:
    return kind(**{field.name: _field(choices, field) for field in fields(kind)})


def _field(choices: FuzzedChoices, field: Any) -> Any:
    inner, is_array = shape(field.type)
    if NoneType in get_args(field.type) and choices.integer(0, 3) == 0:
        return None
    if is_array:
        return tuple(_one(choices, field, inner) for _ in range(choices.integer(0, MOST_ELEMENTS)))
    return _one(choices, field, inner)


def _one(choices: FuzzedChoices, field: Any, inner: Any) -> Any:
    return _entity(choices, inner) if is_dataclass(inner) else _PLAIN[field.metadata["kafka_type"]](choices)


def _whole(bits: int, *, signed: bool = True) -> Callable[[FuzzedChoices], int]:
    low = -(1 << bits - 1) if signed else 0
    # zeros are the most common, so that short inputs make whole messages
    return lambda choices: low + (choices.integer(0, (1 << bits) - 1) - low) % (1 << bits)


def _bytes(choices: FuzzedChoices) -> bytes:
    return choices.data(choices.integer(0, 12))


_PLAIN: dict[str, Callable[[FuzzedChoices], Any]] = {
    "int8": _whole(8),
    "int16": _whole(16),
    "int32": _whole(32),
    "int64": _whole(64),
    "uint16": _whole(16, signed=False),
    "string": lambda choices: _bytes(choices).decode("latin-1"),
    "bytes": _bytes,
    "records": _bytes,
    "bool": lambda choices: choices.integer(0, 1) == 1,
    "uuid": lambda choices: UUID(int=choices.integer(1, 255)),
    "error_code": lambda choices: tuple(ErrorCode)[choices.integer(0, len(ErrorCode) - 1)],
    "timedelta_i32": lambda choices: timedelta(milliseconds=_whole(32)(choices)),
    "timedelta_i64": lambda choices: timedelta(milliseconds=_whole(40)(choices)),
    "datetime_i64": lambda choices: datetime.fromtimestamp(choices.integer(0, 1 << 31), UTC),
}


def seeds() -> Iterator[bytes]:
    for index, (api_key, version) in enumerate(VERSIONS):
        frame = framed(request(api_key, version), 7)
        yield b"\0\1" + struct.pack("<B", index) + frame[LEAST_BYTES:]
    for seed in range(60):
        yield bytes([seed % 5]) + SeededChoices(seed).data(4 * seed)
