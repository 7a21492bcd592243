"""CRC-64-AVRO over a schema's parsing canonical form: the fingerprint in single-object encoding."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Final

from schema_mapping.avro.schema import types_of
from schema_mapping.avro.types import (
    ArrayOf,
    AvroType,
    AvroTypes,
    DecimalBytes,
    EnumSymbols,
    FixedBytes,
    MapOfValues,
    PrimitiveType,
    RecordName,
    UnionOf,
)

_EMPTY: Final = 0xC15D213AA4D7A795
"""Of no bytes; also the polynomial."""
_BYTE: Final = 0xFF


@lru_cache(maxsize=512)
def schema_fingerprint(text: str) -> bytes:
    """Return the 8 bytes that follow the marker. Raises DescriptorError if the text isn't an Avro schema."""
    value = _EMPTY
    for octet in canonical_form(text).encode():
        value = (value >> 8) ^ _TABLE[(value ^ octet) & _BYTE]
    return value.to_bytes(8, "little")


def canonical_form(text: str) -> str:
    """Return the parsing canonical form of Avro's specification. Raises DescriptorError."""
    types = types_of(text)
    return _Canonical(types).of(types.root)


class _Canonical:
    def __init__(self, types: AvroTypes) -> None:
        self._types = types
        self._written: set[str] = set()

    def of(self, kind: AvroType) -> str:
        match kind:
            case PrimitiveType(name):
                return _quoted(name)
            case DecimalBytes():
                return _quoted("bytes")
            case ArrayOf(items):
                return f'{{"type":"array","items":{self.of(items)}}}'
            case MapOfValues(values):
                return f'{{"type":"map","values":{self.of(values)}}}'
            case UnionOf(branches):
                return f"[{','.join(map(self.of, branches))}]"
            case FixedBytes() | EnumSymbols() | RecordName():
                return self._named(kind)

    def _named(self, kind: FixedBytes | EnumSymbols | RecordName) -> str:
        if kind.name in self._written:
            return _quoted(kind.name)
        self._written.add(kind.name)
        head = f'{{"name":{_quoted(kind.name)},"type":'
        match kind:
            case FixedBytes():
                return f'{head}"fixed","size":{kind.size}}}'
            case EnumSymbols():
                return f'{head}"enum","symbols":[{",".join(map(_quoted, kind.symbols))}]}}'
            case RecordName():
                fields = self._types.records[kind.name].fields
                parts = [f'{{"name":{_quoted(field.name)},"type":{self.of(field.type)}}}' for field in fields]
                return f'{head}"record","fields":[{",".join(parts)}]}}'


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _entry(octet: int) -> int:
    for _ in range(8):
        octet = (octet >> 1) ^ (_EMPTY if octet & 1 else 0)
    return octet


_TABLE: Final = tuple(map(_entry, range(256)))
