"""Random bytes for a schema: canonical, odd, or invalid."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from tests.support.schemas.protobuf_bytes import varint
from tests.support.schemas.random_choices import Choices, chance, pick

F = FieldDescriptor
VARINTS = (
    F.TYPE_INT32,
    F.TYPE_INT64,
    F.TYPE_UINT32,
    F.TYPE_UINT64,
    F.TYPE_SINT32,
    F.TYPE_SINT64,
    F.TYPE_BOOL,
    F.TYPE_ENUM,
)
FIXED = {
    F.TYPE_DOUBLE: 8,
    F.TYPE_FIXED64: 8,
    F.TYPE_SFIXED64: 8,
    F.TYPE_FLOAT: 4,
    F.TYPE_FIXED32: 4,
    F.TYPE_SFIXED32: 4,
}
TEXTS = (b"a", b"", "h\u00e9 \u20ac \U0001f600".encode(), b"0123456789abcdef", b"x" * 40)
BAD_TEXTS = (b"\xff", b"ab\xc3", b"\xed\xa0\x80", b"12345678\xf0\x9f", b"\xf4\x90\x80\x80z", b"\xe2\x82", b"\xc0\x80")
FLOATS = (0.0, 1.5, -0.0, float("inf"), float("nan"), -2.0)
DOUBLES = (*FLOATS, 0.1, 1 / 3, 1e300, 5e-324, -12345.678, 9007199254740993.0, 1e15 + 0.3)
ODD_DOUBLES = (0x7FF0000000000001, 0xFFF8000000000000, 0x7FF8000000000001)
ODD_FLOATS = (0x7F800001, 0xFFC00000, 0x7FC00001)
TIMES = ("google.protobuf.Timestamp", "google.protobuf.Duration")
SECONDS = (0, 1, 1_700_000_000, -1, -62_135_596_800, -62_135_596_801, 253_402_300_799, 253_402_300_800)
SECONDS += (315_576_000_000, -315_576_000_000, 9_223_372_036_854, -9_223_372_036_854, 9_223_372_036_855, -(1 << 63))
NANOS = (0, 1_000, 999_999_000, 500_000_000, 1, 999_999_999, -1_000, -1, -500_000_000, 775_807_000, 1_000_000_000)
NANOS += ((1 << 31) - 1, -(1 << 31))
EDGES = (0, 1, 2, 127, 128, 300, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
MAX_MESSAGE_DEPTH = 6


@dataclass(frozen=True, slots=True)
class _Style:
    odd: int  # percent of each oddity that readers take
    broken: int  # percent of each mistake that readers refuse
    depth: int = 0


def random_payload(choices: Choices, descriptor: Descriptor) -> bytes:
    kind = choices.integer(0, 9)
    if kind == 9:
        return choices.data(choices.integer(0, 12))
    style = _Style(odd=(0, 0, 0, 0, 4, 4, 25, 4, 4)[kind], broken=2 if kind >= 7 else 0)
    data = message(choices, descriptor, style)
    if kind == 8:
        return _damaged(choices, data)
    return data


def _damaged(choices: Choices, data: bytes) -> bytes:
    if not data:
        return choices.data(1)
    at = choices.integer(0, len(data) - 1)
    match choices.integer(0, 3):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + choices.data(1) + data[at + 1 :]
        case 2:
            return data[:at] + data[at + 1 :]
        case _:
            return data[:at] + choices.data(choices.integer(1, 3)) + data[at:]


def message(choices: Choices, descriptor: Descriptor, style: _Style) -> bytes:
    parts: list[bytes] = []
    taken: set[str] = set()
    share = max(2, min(60 if style.depth else 75, 400 // max(1, len(descriptor.fields))))
    for field in sorted(descriptor.fields, key=lambda entry: entry.number):
        oneof = field.containing_oneof
        if oneof is not None and oneof.name in taken and not chance(choices, style.odd):
            continue
        if not chance(choices, share):
            continue
        if oneof is not None:
            taken.add(oneof.name)
        parts.extend(_field(choices, field, style))
        if chance(choices, style.odd):
            parts.extend(_field(choices, field, style))
    unknown = choices.integer(0, 3) if chance(choices, 10 + style.odd) else 0
    parts.extend(_unknown(choices, descriptor, style) for _ in range(unknown))
    if len(parts) > 1 and chance(choices, style.odd):
        at = choices.integer(0, len(parts) - 2)
        parts.append(parts.pop(at))
    if chance(choices, style.odd):
        parts.insert(choices.integer(0, len(parts)), _unknown(choices, descriptor, style))
    return b"".join(parts)


def _field(choices: Choices, field: FieldDescriptor, style: _Style) -> list[bytes]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        count = pick(choices, (1, 2, 3, 12)) if style.depth < 3 else 1
        return [_entry(choices, field, style) for _ in range(count)]
    if not field.is_repeated:
        return [_single(choices, field, style)]
    count = choices.integer(1, 4)
    packed = field.is_packed != chance(choices, style.odd)
    if packed and (field.type in VARINTS or field.type in FIXED):
        runs = choices.integer(1, 2) if chance(choices, style.odd) else 1
        return [_run(choices, field, 0 if chance(choices, style.odd) else count, style) for _ in range(runs)]
    return [_single(choices, field, style) for _ in range(count)]


def _run(choices: Choices, field: FieldDescriptor, count: int, style: _Style) -> bytes:
    content = b"".join(_number(choices, field, style) for _ in range(count))
    if chance(choices, style.broken):
        content = content[:-1]
    return _tag(choices, field.number, 2, style) + _delimited(choices, content, style)


def _single(choices: Choices, field: FieldDescriptor, style: _Style) -> bytes:
    if chance(choices, style.odd):
        return _of_wire(choices, field.number, choices.integer(0, 5), style)
    if field.type in VARINTS or field.type in FIXED:
        data = _number(choices, field, style)
        if not field.has_presence and not field.is_repeated and not any(data) and not chance(choices, style.odd):
            return b""
        wire = 0 if field.type in VARINTS else {8: 1, 4: 5}[FIXED[field.type]]
        return _tag(choices, field.number, wire, style) + data
    if field.type in (F.TYPE_STRING, F.TYPE_BYTES):
        text = _text(choices, style)
        if not text and not field.has_presence and not field.is_repeated and not chance(choices, style.odd):
            return b""
        return _tag(choices, field.number, 2, style) + _delimited(choices, text, style)
    return _nested(choices, field, style)


def _nested(choices: Choices, field: Any, style: _Style) -> bytes:
    inner = replace(style, depth=style.depth + 1)
    if field.message_type.full_name in TIMES and not chance(choices, 30):
        content = _time(choices)
    else:
        content = message(choices, field.message_type, inner) if style.depth < MAX_MESSAGE_DEPTH else b""
    if field.type == F.TYPE_GROUP:
        end = field.number + chance(choices, style.broken)
        return _tag(choices, field.number, 3, style) + content + _tag(choices, end, 4, style)
    return _tag(choices, field.number, 2, style) + _delimited(choices, content, style)


def _time(choices: Choices) -> bytes:
    # Seconds and nanoseconds as people send them, and around the ends of what columns hold.
    parts = zip((b"\x08", b"\x10"), (pick(choices, SECONDS), pick(choices, NANOS)), strict=True)
    return b"".join(tag + varint(number & ((1 << 64) - 1)) for tag, number in parts if number)


def _entry(choices: Choices, field: Any, style: _Style) -> bytes:
    fields = field.message_type.fields_by_name
    key = _present(choices, fields["key"], style)
    value = _present(choices, fields["value"], style)
    parts = [key, value]
    if chance(choices, style.odd):
        parts = pick(choices, ([value, key], [key], [value], [], [key, value, value], [key, key, value]))
    if chance(choices, style.odd):
        parts = [*parts, _unknown(choices, field.message_type, style)]
    return _tag(choices, field.number, 2, style) + _delimited(choices, b"".join(parts), style)


def _present(choices: Choices, field: FieldDescriptor, style: _Style) -> bytes:
    # In a map entry a default is written too.
    if field.type in VARINTS:
        small = choices.integer(0, 3) if chance(choices, 50) else None
        data = varint(small) if small is not None and field.type != F.TYPE_ENUM else _number(choices, field, style)
        return _tag(choices, field.number, 0, style) + data
    if field.type in FIXED:
        wire = {8: 1, 4: 5}[FIXED[field.type]]
        return _tag(choices, field.number, wire, style) + _number(choices, field, style)
    if field.type in (F.TYPE_STRING, F.TYPE_BYTES):
        return _tag(choices, field.number, 2, style) + _delimited(choices, _text(choices, style), style)
    return _nested(choices, field, style)


def _number(choices: Choices, field: FieldDescriptor, style: _Style) -> bytes:
    if field.type == F.TYPE_DOUBLE:
        odd = chance(choices, style.odd)
        return struct.pack("<Q", pick(choices, ODD_DOUBLES)) if odd else struct.pack("<d", pick(choices, DOUBLES))
    if field.type == F.TYPE_FLOAT:
        odd = chance(choices, style.odd)
        return struct.pack("<I", pick(choices, ODD_FLOATS)) if odd else struct.pack("<f", pick(choices, FLOATS))
    if field.type in FIXED:
        return pick(choices, EDGES).to_bytes(16, "little")[: FIXED[field.type]]
    value = pick(choices, EDGES)
    if field.type == F.TYPE_BOOL and not chance(choices, style.odd):
        value &= 1
    elif field.type in (F.TYPE_UINT32, F.TYPE_SINT32) and not chance(choices, style.odd):
        value &= (1 << 32) - 1
    elif field.type == F.TYPE_INT32 and not chance(choices, style.odd):
        value = _sign_extended(value)
    elif field.type == F.TYPE_ENUM:
        value = _enum_number(choices, field, style)
    return varint(value, _extra(choices, style))


def _enum_number(choices: Choices, field: Any, style: _Style) -> int:
    numbers: tuple[int, ...] = tuple(field.enum_type.values_by_number)
    if field.enum_type.is_closed and not chance(choices, style.odd):
        return pick(choices, numbers) & ((1 << 64) - 1)
    value = pick(choices, (*numbers, 7, -5, 1 << 31, (1 << 33) + 1))
    return value & ((1 << 64) - 1) if chance(choices, style.odd) else _sign_extended(value)


def _sign_extended(value: int) -> int:
    low = value & ((1 << 32) - 1)
    return (low - (1 << 32) if low >> 31 else low) & ((1 << 64) - 1)


def _text(choices: Choices, style: _Style) -> bytes:
    return pick(choices, BAD_TEXTS) if chance(choices, style.odd // 2) else pick(choices, TEXTS)


def _unknown(choices: Choices, descriptor: Descriptor, style: _Style) -> bytes:
    number = pick(choices, (21, 1, 2, 15, 16, 3000, (1 << 29) - 1))
    if number in descriptor.fields_by_number and not chance(choices, style.odd):
        number = 22
    if chance(choices, style.broken):
        return pick(choices, (b"\x00", b"\x07", b"\x0e", b"\x0c", b"\x0b", b"\x02\x00", b"\xff\xff\xff\xff\x7f\x00"))
    if descriptor.GetOptions().message_set_wire_format and chance(choices, 50):
        return (
            b"\x0b\x10" + varint(choices.integer(4, 300)) + b"\x1a" + _delimited(choices, b"\x08\x01", style) + b"\x0c"
        )
    return _of_wire(choices, number, pick(choices, (0, 1, 2, 3, 5)), style)


def _of_wire(choices: Choices, number: int, wire: int, style: _Style) -> bytes:
    tag = _tag(choices, number, wire, style)
    match wire:
        case 0:
            return tag + varint(pick(choices, EDGES), _extra(choices, style))
        case 1:
            return tag + choices.data(8)
        case 2:
            return tag + _delimited(choices, choices.data(choices.integer(0, 5)), style)
        case 3:
            inner = (
                b"" if chance(choices, 50) else _of_wire(choices, choices.integer(1, 30), choices.integer(0, 2), style)
            )
            return tag + inner + _tag(choices, number, 4, style)
        case 5:
            return tag + choices.data(4)
        case _:
            return tag + varint(1)


def _tag(choices: Choices, number: int, wire: int, style: _Style) -> bytes:
    return varint(number << 3 | wire, min(_extra(choices, style), 2))


def _delimited(choices: Choices, content: bytes, style: _Style) -> bytes:
    size = len(content)
    if chance(choices, style.broken):
        size = pick(choices, (size + 1, max(size - 1, 0), (1 << 31) - 1, 1 << 31, 1 << 35))
    return varint(size, _extra(choices, style)) + content


def _extra(choices: Choices, style: _Style) -> int:
    # Bytes by which a varint is longer than it must be.
    return choices.integer(1, 5) if chance(choices, style.odd // 2) else 0
