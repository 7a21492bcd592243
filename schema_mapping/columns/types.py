"""Types of columns. They widen as Iceberg allows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from schema_mapping.errors import DescriptorError

MAX_PRECISION: Final = 38


class ColumnType(StrEnum):
    """UINT can't widen: its -1 may mean 4294967295. Times count microseconds.

    CUT is a struct with only `__unrecognized__`.
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
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    UUID = "uuid"
    STRUCT = "struct"
    CUT = "cut"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class DecimalColumn:
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
    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise DescriptorError("a fixed column holds at least one byte", size=self.size)

    def __str__(self) -> str:
        return f"fixed[{self.size}]"


UNSIGNED_LONG: Final = DecimalColumn(20, 0)
"""Unsigned 64-bit numbers, if `uint64 = "decimal"` shows them as they are."""

AnyColumnType: TypeAlias = ColumnType | DecimalColumn | FixedColumn

_DECIMAL: Final = re.compile(r"decimal\((\d+), ?(\d+)\)")
_FIXED: Final = re.compile(r"fixed\[(\d+)\]")
_WIDENS_TO: Final = {ColumnType.INT: ColumnType.LONG, ColumnType.FLOAT: ColumnType.DOUBLE}


def read_type(text: str) -> AnyColumnType:
    """Raises DescriptorError if the text is unknown."""
    if match := _DECIMAL.fullmatch(text):
        return DecimalColumn(int(match[1]), int(match[2]))
    if match := _FIXED.fullmatch(text):
        return FixedColumn(int(match[1]))
    try:
        return ColumnType(text)
    except ValueError:
        raise DescriptorError("a column type that this archiver doesn't know; upgrade it", type=text) from None


def widens(narrow: AnyColumnType, wide: AnyColumnType) -> bool:
    """Whether Iceberg widens in place, with old values unchanged."""
    match narrow, wide:
        case DecimalColumn(), DecimalColumn():
            return narrow.scale == wide.scale and narrow.precision < wide.precision
        case ColumnType(), ColumnType():
            return _WIDENS_TO.get(narrow) is wide
        case _:
            return False
