"""The types of an Avro schema after it was read: what bytes and columns depend on, without defaults.

Named types are values too, except records: a record is a name in `AvroSchema.records`, because it may contain itself.
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
    """A primitive type, with its logical type if that changes the column."""

    kind: Primitive
    logical: Logical | None = None


@dataclass(frozen=True, slots=True)
class DecimalDigits:
    """The digits of a decimal: at most `precision`, `scale` of them after the point."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class DecimalBytes:
    """A decimal as bytes of any length."""

    digits: DecimalDigits


@dataclass(frozen=True, slots=True)
class FixedBytes:
    """Byte strings of one size: plain, a decimal or a uuid."""

    name: str
    size: int
    aliases: tuple[str, ...] = ()
    digits: DecimalDigits | None = None
    is_uuid: bool = False


@dataclass(frozen=True, slots=True)
class EnumSymbols:
    """An enum: a value is a place among the symbols."""

    name: str
    symbols: tuple[str, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordName:
    """A record, by its full name."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array."""

    items: AvroType


@dataclass(frozen=True, slots=True)
class MapOfValues:
    """A map. Its keys are strings."""

    values: AvroType


@dataclass(frozen=True, slots=True)
class UnionOf:
    """A union: a value is one of the branches."""

    branches: tuple[AvroType, ...]


AvroType: TypeAlias = (
    PrimitiveType | DecimalBytes | FixedBytes | EnumSymbols | RecordName | ArrayOf | MapOfValues | UnionOf
)

NULL: Final = PrimitiveType("null")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordField:
    """A field of a record."""

    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    doc: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordType:
    """A record and its fields, in the order of their bytes."""

    name: str
    fields: tuple[RecordField, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroTypes:
    """A schema that has been read: the type of a value, and all records that it leads to, by full name."""

    root: AvroType
    records: Mapping[str, RecordType]

    @property
    def name(self) -> str:
        """The name of the value's type."""
        return type_name(self.root)


def type_name(kind: AvroType) -> str:
    """The name that a union's branch of this type has: a full name, or the name of the unnamed type."""
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
    """A type without its null branch, and the place of that branch; None if it has none.

    A union of null and one type becomes that type.
    """
    if not isinstance(kind, UnionOf) or NULL not in kind.branches:
        return kind, None
    rest = tuple(branch for branch in kind.branches if branch != NULL)
    return (rest[0] if len(rest) == 1 else UnionOf(rest)), kind.branches.index(NULL)
