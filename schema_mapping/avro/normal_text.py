"""An Avro schema's normal text: all that bytes and columns depend on.

Unlike the parsing canonical form it keeps logical types and aliases.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from schema_mapping.avro.types import (
    ArrayOf,
    AvroType,
    AvroTypes,
    DecimalBytes,
    DecimalDigits,
    EnumSymbols,
    FixedBytes,
    MapOfValues,
    PrimitiveType,
    RecordName,
    UnionOf,
)


def normal_text(types: AvroTypes) -> str:
    """Schemas with equal texts have equal bytes and columns."""
    return json.dumps(_Writing(types).of(types.root), separators=(",", ":"))


def fingerprint_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class _Writing:
    def __init__(self, types: AvroTypes) -> None:
        self._types = types
        self._written: set[str] = set()

    def of(self, kind: AvroType) -> Any:  # noqa: PLR0911 - a table of types
        match kind:
            case PrimitiveType(name, None):
                return name
            case PrimitiveType(name, logical):
                return {"type": name, "logicalType": logical}
            case DecimalBytes(digits):
                return {"type": "bytes", **_digits(digits)}
            case ArrayOf(items):
                return {"type": "array", "items": self.of(items)}
            case MapOfValues(values):
                return {"type": "map", "values": self.of(values)}
            case UnionOf(branches):
                return [self.of(branch) for branch in branches]
            case FixedBytes() | EnumSymbols() | RecordName():
                return self._named(kind)

    def _named(self, kind: FixedBytes | EnumSymbols | RecordName) -> Any:
        # A name without a namespace gets a dot before it, so that it does not take the namespace of the type around it.
        name = kind.name if "." in kind.name else f".{kind.name}"
        if kind.name in self._written:
            return name
        self._written.add(kind.name)
        match kind:
            case EnumSymbols():
                return {"type": "enum", "name": name, **_aliases(kind.aliases), "symbols": list(kind.symbols)}
            case FixedBytes():
                logical = {"logicalType": "uuid"} if kind.is_uuid else _digits(kind.digits) if kind.digits else {}
                return {"type": "fixed", "name": name, **_aliases(kind.aliases), "size": kind.size, **logical}
            case RecordName():
                record = self._types.records[kind.name]
                fields = [
                    {
                        "name": field.name,
                        "type": self.of(field.type),
                        **({"aliases": list(field.aliases)} if field.aliases else {}),
                    }
                    for field in record.fields
                ]
                return {"type": "record", "name": name, **_aliases(record.aliases), "fields": fields}


def _aliases(aliases: tuple[str, ...]) -> dict[str, Any]:
    names = [alias if "." in alias else f".{alias}" for alias in aliases]
    return {"aliases": names} if names else {}


def _digits(digits: DecimalDigits) -> dict[str, Any]:
    return {"logicalType": "decimal", "precision": digits.precision, "scale": digits.scale}
