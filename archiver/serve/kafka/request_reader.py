"""Decodes requests, trusting no length that they state.

kio's reader allocates first: 15 bytes that announce 2^31 elements end the process.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType
from typing import Any, Final, TypeAlias, get_args, get_origin
from uuid import UUID

from kio.schema.errors import ErrorCode

from archiver.errors import BadRequest

_Read: TypeAlias = Callable[["FrameBytes"], Any]

MOST_ELEMENTS: Final = 100_000
"""How many elements all arrays of a request have in all, tagged fields counted with them."""
_MOST_VARINT_BITS: Final = 35
_MOST_MILLIS: Final = 999_999_999 * 86_400_000
"""The days that a `timedelta` can have at most, in milliseconds."""
_NUMBERS: Final = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "uint8": struct.Struct(">B"),
    "uint16": struct.Struct(">H"),
    "uint32": struct.Struct(">I"),
    "uint64": struct.Struct(">Q"),
    "float64": struct.Struct(">d"),
}
_INT8, _INT16, _INT32, _INT64 = (_NUMBERS[name] for name in ("int8", "int16", "int32", "int64"))


class FrameBytes:
    """Reads raise BadRequest if the bytes end."""

    __slots__ = ("_data", "_end", "_place", "_room")

    def __init__(self, data: bytes, most_elements: int = MOST_ELEMENTS) -> None:
        """`most_elements` is over all arrays."""
        self._data = data
        self._place = 0
        self._end = len(data)
        self._room = most_elements

    @property
    def left(self) -> int:
        return self._end - self._place

    def number(self, form: struct.Struct) -> Any:
        self._need(form.size)
        (number,) = form.unpack_from(self._data, self._place)
        self._place += form.size
        return number

    def take(self, size: int) -> bytes:
        self._need(size)
        start, self._place = self._place, self._place + size
        return self._data[start : self._place]

    def elements(self, count: int) -> range:
        """Raises BadRequest if there are too many elements, or more than bytes left."""
        if count > self.left:
            raise BadRequest("an array of the frame is longer than the frame", elements=count, left=self.left)
        if count > self._room:
            raise BadRequest("the arrays of the frame have too many elements", elements=count, left=self._room)
        self._room -= count
        return range(count)

    def tag(self, read: _Read | None) -> Any:
        inside = FrameBytes(self.take(self.varint()), self._room)
        if read is None:
            return None
        value = read(inside)
        self._room = inside._room
        return value

    def varint(self) -> int:
        """Raises BadRequest beyond 32 bits."""
        number = 0
        for shift in range(0, _MOST_VARINT_BITS, 7):
            self._need(1)
            byte = self._data[self._place]
            self._place += 1
            number |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return number
        raise BadRequest("a variable-length number of the frame doesn't end")

    def _need(self, size: int) -> None:
        if not 0 <= size <= self._end - self._place:
            raise BadRequest("a field of the frame is longer than the frame", bytes=size, left=self.left)


@cache
def reader_of(kind: type[Any]) -> _Read:
    is_flexible = bool(kind.__flexible__)
    plain: list[tuple[str, _Read]] = []
    tagged: dict[int, tuple[str, _Read]] = {}
    defaults: dict[str, Any] = {}
    for field in fields(kind):
        tag = field.metadata.get("tag")
        if tag is None:
            plain.append((field.name, _field_reader(field, is_flexible=is_flexible, is_tagged=False)))
        else:
            tagged[tag] = field.name, _field_reader(field, is_flexible=is_flexible, is_tagged=True)
            if field.default is not MISSING:
                defaults[field.name] = field.default

    def read(data: FrameBytes) -> Any:
        values = dict(defaults)
        for name, read_field in plain:
            values[name] = read_field(data)
        if is_flexible:
            for _ in data.elements(data.varint()):
                name, read_tag = tagged.get(data.varint(), ("", None))
                value = data.tag(read_tag)
                if read_tag is not None:
                    values[name] = value
        return kind(**values)

    return read


def _field_reader(field: Field[Any], *, is_flexible: bool, is_tagged: bool) -> _Read:
    inner, is_array, may_be_null = _shape(field.type)
    if is_dataclass(inner):
        assert isinstance(inner, type)
        read_item = reader_of(inner)
        if may_be_null and not is_array and not is_tagged:
            return lambda data: None if data.number(_INT8) < 0 else read_item(data)
    else:
        may_one_be_null = not is_array and (may_be_null or is_tagged)
        read_item = _primitive(field.metadata["kafka_type"], is_flexible=is_flexible, may_be_null=may_one_be_null)
    return _array(read_item, is_flexible=is_flexible, may_be_null=may_be_null) if is_array else read_item


def _shape(kind: Any) -> tuple[Any, bool, bool]:
    may_be_null = NoneType in get_args(kind)
    if may_be_null:
        (kind,) = (argument for argument in get_args(kind) if argument is not NoneType)
    if get_origin(kind) is not tuple:
        return kind, False, may_be_null
    return get_args(kind)[0], True, may_be_null


def _array(one: _Read, *, is_flexible: bool, may_be_null: bool) -> _Read:
    def read(data: FrameBytes) -> tuple[Any, ...] | None:
        count = data.varint() - 1 if is_flexible else data.number(_INT32)
        if count < 0:
            if not may_be_null:
                raise BadRequest("an array of the frame is null, and may not be")
            return None
        return tuple(one(data) for _ in data.elements(count))

    return read


def _primitive(kind: str, *, is_flexible: bool, may_be_null: bool) -> _Read:
    if kind in _NUMBERS:
        form = _NUMBERS[kind]
        return lambda data: data.number(form)
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    match kind:
        case "string":
            return _text(_sized(is_flexible=is_flexible, length=_INT16), may_be_null=may_be_null)
        case "bytes" | "records":
            return _known(_sized(is_flexible=is_flexible, length=_INT32), may_be_null=may_be_null)
        case _:
            # No request that the server answers has such a field; a test makes the readers of them all.
            raise NotImplementedError(f"requests with a field of type {kind!r} have no reader: add one beside _SIMPLE")


def _sized(*, is_flexible: bool, length: struct.Struct) -> Callable[[FrameBytes], bytes | None]:
    def read(data: FrameBytes) -> bytes | None:
        size = data.varint() - 1 if is_flexible else data.number(length)
        return None if size < 0 else data.take(size)

    return read


def _known(read: Callable[[FrameBytes], bytes | None], *, may_be_null: bool) -> Callable[[FrameBytes], bytes | None]:
    def checked(data: FrameBytes) -> bytes | None:
        value = read(data)
        if value is None and not may_be_null:
            raise BadRequest("a field of the frame is null, and may not be")
        return value

    return checked


def _text(read: Callable[[FrameBytes], bytes | None], *, may_be_null: bool) -> Callable[[FrameBytes], str | None]:
    read_bytes = _known(read, may_be_null=may_be_null)

    def decoded(data: FrameBytes) -> str | None:
        value = read_bytes(data)
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError:
            raise BadRequest("a text of the frame isn't UTF-8") from None

    return decoded


def _uuid(data: FrameBytes) -> UUID | None:
    uuid = UUID(bytes=data.take(16))
    return uuid if uuid.int else None


def _clamped(millis: int) -> int:
    """Limit to the range of `timedelta`."""
    return max(-_MOST_MILLIS, min(millis, _MOST_MILLIS))


_SIMPLE: Final[Mapping[str, _Read]] = {
    "bool": lambda data: data.number(_INT8) != 0,
    "uuid": _uuid,
    "error_code": lambda data: ErrorCode(data.number(_INT16)),
    "timedelta_i32": lambda data: timedelta(milliseconds=data.number(_INT32)),
    "timedelta_i64": lambda data: timedelta(milliseconds=_clamped(data.number(_INT64))),
}
