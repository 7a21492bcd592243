"""Avro types: all that bytes and columns depend on.

Records are named in `AvroTypes.records`, as they may contain themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Primitive: TypeAlias = Literal["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
Logical: TypeAlias = Literal[
    "date",
    "time-millis",
    "time-micros",
    "timestamp-millis",
    "timestamp-micros",
    "local-timestamp-millis",
    "local-timestamp-micros",
    "uuid",
]

PRIMITIVES: Final[tuple[Primitive, ...]] = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL_OF: Final[Mapping[Primitive, tuple[Logical, ...]]] = {
    "int": ("date", "time-millis"),
    "long": (
        "time-micros",
        "timestamp-millis",
        "timestamp-micros",
        "local-timestamp-millis",
        "local-timestamp-micros",
    ),
    "string": ("uuid",),
}
"""The logical types that change the column. Any other logical type is shown as the type that it annotates."""


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    kind: Primitive
    logical: Logical | None = None


@dataclass(frozen=True, slots=True)
class DecimalDigits:
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class DecimalBytes:
    digits: DecimalDigits


@dataclass(frozen=True, slots=True)
class FixedBytes:
    """Plain, a decimal or a uuid."""

    name: str
    size: int
    aliases: tuple[str, ...] = ()
    digits: DecimalDigits | None = None
    is_uuid: bool = False


@dataclass(frozen=True, slots=True)
class EnumSymbols:
    name: str
    symbols: tuple[str, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordName:
    name: str


@dataclass(frozen=True, slots=True)
class ArrayOf:
    items: AvroType


@dataclass(frozen=True, slots=True)
class MapOfValues:
    values: AvroType


@dataclass(frozen=True, slots=True)
class UnionOf:
    branches: tuple[AvroType, ...]


AvroType: TypeAlias = (
    PrimitiveType | DecimalBytes | FixedBytes | EnumSymbols | RecordName | ArrayOf | MapOfValues | UnionOf
)

NULL: Final = PrimitiveType("null")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordField:
    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    doc: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordType:
    name: str
    fields: tuple[RecordField, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroTypes:
    root: AvroType
    records: Mapping[str, RecordType]

    @property
    def name(self) -> str:
        return type_name(self.root)


def type_name(kind: AvroType) -> str:
    """A full name, or an unnamed type's name."""
    match kind:
        case PrimitiveType():
            return kind.kind
        case DecimalBytes():
            return "bytes"
        case FixedBytes() | EnumSymbols() | RecordName():
            return kind.name
        case ArrayOf():
            return "array"
        case MapOfValues():
            return "map"
        case UnionOf():
            return "union"


def without_null(kind: AvroType) -> tuple[AvroType, int | None]:
    """Also return the null branch's place. A union of null and one type becomes that type."""
    if not isinstance(kind, UnionOf) or NULL not in kind.branches:
        return kind, None
    rest = tuple(branch for branch in kind.branches if branch != NULL)
    return (rest[0] if len(rest) == 1 else UnionOf(rest)), kind.branches.index(NULL)
