"""Frames: requests read within limits, answers written in parts."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from archiver.errors import BadRequest
from archiver.serve.kafka.messages import request_kind, response_kind
from archiver.serve.kafka.request_memory import SMALL
from archiver.serve.kafka.request_reader import MOST_ELEMENTS, FrameBytes, reader_of
from archiver.serve.kafka.service import Client, Request
from archiver.wire.api_keys import ApiKey

_LENGTH: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">hhi")
_CLIENT: Final = struct.Struct(">h")
_MOST_CLIENT_ID: Final = 256
_MOST_ELEMENTS_OF_STRANGERS: Final = 64
"""Elements of a request before authentication. Such requests have no arrays: this is for tagged fields."""
_LEAST_BYTES_A_SECOND: Final = 128 << 10
_SLICE_BYTES: Final = 256 << 10
_JOINED_BYTES: Final = 4 << 10
_PARTS_AT_ONCE: Final = 1024
"""As many as Linux takes in one call."""
LEAST_BYTES: Final = _HEAD.size
"""The length of the shortest request."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    api_key: int
    version: int
    correlation_id: int


async def read_size(
    reader: asyncio.StreamReader, least_bytes: int, most_bytes: int, *, idle_seconds: float
) -> int | None:
    """None if the client is idle or gone. Raises BadRequest if the length is out of bounds."""
    try:
        async with asyncio.timeout(idle_seconds):
            (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    except TimeoutError:
        return None
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise BadRequest("the connection ended within a frame") from None
        return None
    if not least_bytes <= size <= most_bytes:
        raise BadRequest("a frame's size is beyond the limit for requests", bytes=size, most=most_bytes)
    return int(size)


async def read_rest(
    reader: asyncio.StreamReader, size: int, *, part_seconds: float, grow: Callable[[int], Awaitable[None]]
) -> bytes:
    """`grow` waits for memory for a large frame.

    Raises BadRequest if it ends early, or if a part or the whole is too slow, not counting `grow`.
    """
    parts: list[bytes] = []
    clock = asyncio.get_running_loop().time
    left = part_seconds + size / _LEAST_BYTES_A_SECOND
    for start in range(0, size, SMALL):
        began = clock()
        try:
            async with asyncio.timeout(min(part_seconds, left)):
                parts.append(await reader.readexactly(min(SMALL, size - start)))
        except asyncio.IncompleteReadError:
            raise BadRequest("the connection ended within a frame", bytes=size) from None
        except TimeoutError:
            raise BadRequest("a frame came too slowly", bytes=size, came=start) from None
        left -= clock() - began
        if size > SMALL:
            await grow(len(parts[-1]))
    return b"".join(parts)


def head_of(frame: bytes) -> RequestHead:
    return RequestHead(*_HEAD.unpack_from(frame))


def request_of(head: RequestHead, frame: bytes, client: Client) -> Request:
    """Raises BadRequest if the frame is malformed."""
    kind = request_kind(head.api_key, head.version)
    data = FrameBytes(frame, _MOST_ELEMENTS_OF_STRANGERS if client.login.access is None else MOST_ELEMENTS)
    data.take(_HEAD.size)
    size = data.number(_CLIENT)  # also in flexible versions
    client_id = data.take(size).decode(errors="replace") if size > 0 else ""
    if kind.__header_schema__.__flexible__:
        for _ in data.elements(data.varint()):
            data.varint()
            data.tag(None)
    return Request(
        api_key=head.api_key,
        version=head.version,
        correlation_id=head.correlation_id,
        client_id=client_id[:_MOST_CLIENT_ID],
        body=reader_of(kind)(data),
        client=client,
    )


def response_head(head: RequestHead) -> bytes:
    """ApiVersions has no tags: the client hasn't negotiated a version yet."""
    number = struct.pack(">i", head.correlation_id)
    is_flexible = response_kind(head.api_key, head.version).__header_schema__.__flexible__
    return number + b"\0" if is_flexible and head.api_key != ApiKey.API_VERSIONS else number


async def write_frame(
    writer: asyncio.StreamWriter, parts: Sequence[bytes | memoryview], *, slice_seconds: float
) -> None:
    """Raises TimeoutError if a slice isn't taken in time."""
    transport = writer.transport
    frame = _unsent(transport, [_LENGTH.pack(sum(map(len, parts))), *parts])
    for part in _slices(frame):
        writer.write(part)
        if transport.get_write_buffer_size() or transport.is_closing():
            async with asyncio.timeout(slice_seconds):
                await writer.drain()


def _unsent(transport: asyncio.WriteTransport, parts: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """Send without a copy; return the rest."""
    plain = transport.get_extra_info("socket")
    is_encrypted = transport.get_extra_info("sslcontext") is not None
    if plain is None or is_encrypted or transport.is_closing() or transport.get_write_buffer_size():
        return parts
    try:
        sent = os.writev(plain.fileno(), parts[:_PARTS_AT_ONCE])
    except OSError:  # no room, or no client: the transport finds that out as well
        return parts
    for index, part in enumerate(parts):
        if sent < len(part):
            return [memoryview(part)[sent:], *parts[index + 1 :]]
        sent -= len(part)
    return []


def _slices(parts: Sequence[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    short = b""
    for part in parts:
        if len(short) + len(part) <= _JOINED_BYTES:
            short += part
            continue
        if short:
            yield short
        short = b""
        for start in range(0, len(part), _SLICE_BYTES):
            yield memoryview(part)[start : start + _SLICE_BYTES]
    if short:
        yield short
