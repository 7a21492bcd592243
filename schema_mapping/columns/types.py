"""The types that a column can have, whatever the format of the values: scalars, and what holds other columns.

Each has a text, as ledgers keep it and people read it; scalars have an Arrow type. Widening is Iceberg's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

import pyarrow as pa

from schema_mapping.errors import DescriptorError

MAX_PRECISION: Final = 38


class ColumnType(StrEnum):
    """The types without parameters.

    UINT is an Iceberg int that has held unsigned values, so it can't widen: its -1 may mean 4294967295. TIME and
    TIMESTAMPTZ are microseconds. CUT is a struct with only `__unrecognized__`.
    """

    BOOLEAN = "boolean"
    INT = "int"
    UINT = "uint"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIME = "time"
    TIMESTAMPTZ = "timestamptz"
    UUID = "uuid"
    STRUCT = "struct"
    CUT = "cut"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class DecimalColumn:
    """Numbers of at most `precision` decimal digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= MAX_PRECISION and 0 <= self.scale <= self.precision):
            raise DescriptorError(
                f"a decimal has 1 to {MAX_PRECISION} digits, and at most all of them after the point",
                precision=self.precision,
                scale=self.scale,
            )

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class FixedColumn:
    """Byte strings that are all `size` bytes long."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise DescriptorError("a fixed column holds at least one byte", size=self.size)

    def __str__(self) -> str:
        return f"fixed[{self.size}]"


AnyColumnType: TypeAlias = ColumnType | DecimalColumn | FixedColumn

_DECIMAL: Final = re.compile(r"decimal\((\d+), ?(\d+)\)")
_FIXED: Final = re.compile(r"fixed\[(\d+)\]")
_WIDENS_TO: Final = {ColumnType.INT: ColumnType.LONG, ColumnType.FLOAT: ColumnType.DOUBLE}
_ARROW_TYPES: Final[dict[ColumnType, pa.DataType]] = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INT: pa.int32(),
    ColumnType.UINT: pa.int32(),
    ColumnType.LONG: pa.int64(),
    ColumnType.FLOAT: pa.float32(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.STRING: pa.string(),
    ColumnType.BINARY: pa.binary(),
    ColumnType.DATE: pa.date32(),
    ColumnType.TIME: pa.time64("us"),
    ColumnType.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    ColumnType.UUID: pa.uuid(),
}


def read_type(text: str) -> AnyColumnType:
    """The type with this text. Raises DescriptorError for one that this version doesn't know."""
    if found := _DECIMAL.fullmatch(text):
        return DecimalColumn(int(found[1]), int(found[2]))
    if found := _FIXED.fullmatch(text):
        return FixedColumn(int(found[1]))
    try:
        return ColumnType(text)
    except ValueError:
        raise DescriptorError("a column type that this archiver doesn't know; upgrade it", type=text) from None


def scalar_arrow_type(kind: AnyColumnType) -> pa.DataType | None:
    """The Arrow type of a scalar column; None for a type that holds other columns."""
    match kind:
        case DecimalColumn():
            return pa.decimal128(kind.precision, kind.scale)
        case FixedColumn():
            return pa.binary(kind.size)
        case ColumnType():
            return _ARROW_TYPES.get(kind)


def widens(narrow: AnyColumnType, wide: AnyColumnType) -> bool:
    """Whether Iceberg turns a column of the one type into the other in place, and every old value stays what it is."""
    match narrow, wide:
        case DecimalColumn(), DecimalColumn():
            return narrow.scale == wide.scale and narrow.precision < wide.precision
        case ColumnType(), ColumnType():
            return _WIDENS_TO.get(narrow) is wide
        case _:
            return False
