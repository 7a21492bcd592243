"""A plain reader of Avro, after the specification and Java's `BinaryDecoder`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

FREE_ITEMS: Final = 65_536
"""Items without bytes that a value may have: Java has a similar limit, which its users set."""
PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class Unreadable(Exception): ...


def is_readable(schema: Any, value: bytes) -> bool:
    """Whether Java's reader accepts it, with trailing bytes. Needs a high recursion limit."""
    reader = _PlainReader(value, {})
    _define(schema, reader.types)
    try:
        reader.skip(schema)
    except Unreadable:
        return False
    return True


def _define(schema: Any, types: dict[str, Any]) -> None:
    match schema:
        case list():
            for branch in schema:
                _define(branch, types)
        case {"type": "record", "name": name, "fields": fields}:
            types[name] = schema
            for field in fields:
                _define(field["type"], types)
        case {"type": "enum" | "fixed", "name": name}:
            types[name] = schema
        case {"type": "array", "items": inner} | {"type": "map", "values": inner}:
            _define(inner, types)


@dataclass
class _PlainReader:
    data: bytes
    types: dict[str, Any]
    at: int = 0
    free_items: int = FREE_ITEMS

    def skip(self, schema: Any) -> None:
        if isinstance(schema, list):
            index = self.number(5)
            if not 0 <= index < len(schema):
                raise Unreadable
            self.skip(schema[index])
        else:
            kind = schema["type"] if isinstance(schema, dict) else schema
            if kind in PRIMITIVES:
                self.primitive(kind)
            elif isinstance(schema, str):
                self.skip(self.types[schema])
            else:
                self.complex(kind, schema)

    def primitive(self, kind: str) -> None:
        match kind:
            case "boolean":
                self.take(1)
            case "int":
                self.number(5)
            case "long":
                self.number(10)
            case "float":
                self.take(4)
            case "double":
                self.take(8)
            case "bytes" | "string":
                self.take(self.number(10))

    def complex(self, kind: str, schema: Any) -> None:
        match kind:
            case "record":
                for field in schema["fields"]:
                    self.skip(field["type"])
            case "enum":
                if not 0 <= self.number(5) < len(schema["symbols"]):
                    raise Unreadable
            case "fixed":
                self.take(schema["size"])
            case "array" | "map":
                self.blocks(schema)

    def blocks(self, schema: Any) -> None:
        while count := self.number(10):
            if count < 0:
                self.number(10)
            for _ in range(abs(count)):
                if schema["type"] == "map":
                    self.primitive("string")
                    self.skip(schema["values"])
                else:
                    before = self.at
                    self.skip(schema["items"])
                    if before == self.at:
                        self.free_items -= abs(count)
                        break
            if self.free_items < 0:
                raise Unreadable

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise Unreadable
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, longest: int) -> int:
        result = 0
        for index in range(longest):
            byte = self.take(1)[0]
            result |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                result &= (1 << (32 if longest == 5 else 64)) - 1
                return (result >> 1) ^ -(result & 1)
        raise Unreadable
