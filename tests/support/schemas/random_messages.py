"""Random messages of bounded size."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

F = FieldDescriptor
TEXTS = ("", "a", "h\u00e9 \u20ac \U0001f600", "0123456789abcdef", "x" * 200)
FLOATS = (0.0, -0.0, 1.5, -2.0, float("inf"), float("-inf"), float("nan"))
EDGES = (0, 1, 2, 127, 128, 300, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1)
SIGNED = {
    F.TYPE_INT32: 32,
    F.TYPE_SINT32: 32,
    F.TYPE_SFIXED32: 32,
    F.TYPE_INT64: 64,
    F.TYPE_SINT64: 64,
    F.TYPE_SFIXED64: 64,
}
UNSIGNED = {F.TYPE_UINT32: 32, F.TYPE_FIXED32: 32, F.TYPE_UINT64: 64, F.TYPE_FIXED64: 64}
DEEPEST = 40
MOST_ELEMENTS = 4


def random_message(seed: int, descriptor: Descriptor, size: int = 60) -> Message:
    return _Maker(random.Random(seed), size).fill(message_factory.GetMessageClass(descriptor)(), 0)


def damaged(seed: int, data: bytes) -> bytes:
    chosen = random.Random(seed)
    if not data:
        return chosen.randbytes(2)
    at = chosen.randrange(len(data))
    return chosen.choice(
        (
            data[:at],
            data[:at] + chosen.randbytes(1) + data[at + 1 :],
            data[:at] + data[at + 1 :],
            data[:at] + chosen.randbytes(2) + data[at:],
        )
    )


class _Maker:
    def __init__(self, chosen: random.Random, size: int) -> None:
        self._random = chosen
        self._left = size

    def fill(self, message: Message, depth: int) -> Message:
        fields = list(message.DESCRIPTOR.fields)
        left = max(self._left, 0)
        expected = self._random.randint(0 if depth else 1, 8 + left // 4)
        for field in self._random.sample(fields, min(len(fields), expected, left)):
            self._left -= 1
            self._set(message, field, depth)
        return message

    def _set(self, message: Message, field: FieldDescriptor, depth: int) -> None:
        entry = (
            field.message_type if field.message_type is not None and field.message_type.GetOptions().map_entry else None
        )
        if entry is not None:
            self._put(getattr(message, field.name), entry, depth)
        elif field.message_type is not None:
            if depth < DEEPEST:
                value = getattr(message, field.name)
                for _ in range(self._count() if field.is_repeated else 1):
                    inner = value.add() if field.is_repeated else value
                    inner.SetInParent()
                    self.fill(inner, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(self._scalar(field) for _ in range(self._count()))
        else:
            setattr(message, field.name, self._scalar(field))

    def _put(self, target: Any, entry: Descriptor, depth: int) -> None:
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        for _ in range(self._count()):
            if value.message_type is None:
                target[self._scalar(key)] = self._scalar(value)
            elif depth < DEEPEST:
                self.fill(target[self._scalar(key)], depth + 1)

    def _count(self) -> int:
        return self._random.randint(1, MOST_ELEMENTS)

    def _scalar(self, field: FieldDescriptor) -> Any:
        chosen = self._random
        if field.type in SIGNED:
            bits = SIGNED[field.type]
            value = chosen.choice(EDGES) & ((1 << bits) - 1)
            return value - (1 << bits) if value >> (bits - 1) else value
        if field.type in UNSIGNED:
            return chosen.choice(EDGES) & ((1 << UNSIGNED[field.type]) - 1)
        makers = {F.TYPE_BOOL: self._flag, F.TYPE_STRING: self._text, F.TYPE_BYTES: self._bytes}
        if field.type == F.TYPE_ENUM:
            numbers = list(field.enum_type.values_by_number)
            return chosen.choice(numbers if field.enum_type.is_closed else [*numbers, 77_777, -5])
        return makers.get(field.type, self._float)()

    def _flag(self) -> bool:
        return self._random.random() < 0.5

    def _text(self) -> str:
        return self._random.choice(TEXTS)

    def _bytes(self) -> bytes:
        return self._random.randbytes(self._random.choice((0, 1, 20)))

    def _float(self) -> float:
        return self._random.choice(FLOATS)
