"""Flight's protobuf messages, parsed by hand: bodies stay views (Flight.proto)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from archiver.errors import BadBatch

View: TypeAlias = memoryview

_EMPTY: Final = memoryview(b"")
_BYTES: Final = 2
_LONGEST_VARINT: Final = 10
_DATA_BODY: Final = 1000


class FlightData(NamedTuple):
    descriptor: View = _EMPTY
    header: View = _EMPTY
    metadata: View = _EMPTY
    body: View = _EMPTY


@dataclass(frozen=True, slots=True)
class Action:
    kind: str
    body: bytes


def parse_flight_data(data: bytes) -> FlightData:
    """Raises BadBatch."""
    numbers = {1: "descriptor", 2: "header", 3: "metadata", _DATA_BODY: "body"}
    return FlightData(**{numbers[number]: value for number, value in _fields(memoryview(data)) if number in numbers})


def parse_path(descriptor: View) -> tuple[str, ...]:
    """Raises BadBatch."""
    try:
        return tuple(str(value, "utf-8") for number, value in _fields(descriptor) if number == 3)  # noqa: PLR2004 - path
    except UnicodeDecodeError:
        raise BadBatch("the descriptor's path is not UTF-8") from None


def parse_action(data: bytes) -> Action:
    fields = dict(_fields(memoryview(data)))
    return Action(bytes(fields.get(1, _EMPTY)).decode(errors="replace"), bytes(fields.get(2, _EMPTY)))


def put_result(metadata: bytes) -> bytes:
    return bytes_field(1, metadata)


def action_result(body: bytes) -> bytes:
    return bytes_field(1, body)


def action_type(kind: str, description: str) -> bytes:
    return bytes_field(1, kind.encode()) + bytes_field(2, description.encode())


def handshake_response(payload: bytes) -> bytes:
    return bytes_field(2, payload)


def bytes_field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _fields(data: View) -> Iterator[tuple[int, View]]:
    position = 0
    while position < len(data):
        tag, position = _read_varint(data, position)
        match tag & 7:
            case 0:
                _, position = _read_varint(data, position)
            case 1:
                position += 8
            case 2:
                size, position = _read_varint(data, position)
                if position + size > len(data):
                    raise BadBatch("the message is cut short")
                yield tag >> 3, data[position : position + size]
                position += size
            case 5:
                position += 4
            case _:
                raise BadBatch("the message is no FlightData")
    if position > len(data):
        raise BadBatch("the message is cut short")


def _read_varint(data: View, position: int) -> tuple[int, int]:
    value = 0
    for index in range(_LONGEST_VARINT):
        if position + index >= len(data):
            raise BadBatch("the message is cut short")
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:  # noqa: PLR2004 - the last byte
            return value, position + index + 1
    raise BadBatch("the message is no FlightData")
