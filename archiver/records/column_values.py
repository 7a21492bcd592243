"""Parse values for comparisons by the column's type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from typing import Final, TypeAlias
from uuid import UUID

import numpy as np
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestamptzType,
    UUIDType,
)

from archiver.errors import ConfigError
from archiver.records.where_syntax import ColumnIs, moment_of

Value: TypeAlias = str | bytes | int | float | Decimal | bool | datetime | date

INSTEAD: Final = "query the table for the partitions and offsets of such records, and give these"
"""What to do where no condition on a column says what is meant."""

_BITS: Final[dict[type[IcebergType], int]] = {IntegerType: 32, LongType: 64}
_DIGITS: Final = 100
"""More than any number of a column has, so nothing is rounded."""


def value_for(asked: ColumnIs, kind: IcebergType) -> Value:
    """Raises ConfigError, also if the type has no such comparison."""
    constant = asked.value
    _check_comparison(asked, kind)
    match kind, constant.kind:
        case StringType(), "text":
            return constant.text
        case BinaryType() | FixedType(), "text" | "bytes":
            octets = constant.text.encode() if constant.kind == "text" else bytes.fromhex(constant.text)
            if isinstance(kind, FixedType) and len(octets) != len(kind):
                raise _out_of_range(asked, kind)
            return octets
        case IntegerType() | LongType() | FloatType() | DoubleType() | DecimalType(), "number":
            return _number(asked, kind)
        case BooleanType(), "truth":
            return constant.text == "true"
        case TimestamptzType() | DateType() | UUIDType(), "time" | "text":
            return _parsed(asked, kind)
        case _:
            raise _mismatch(asked, kind)


def _check_comparison(asked: ColumnIs, kind: IcebergType) -> None:
    match asked.comparison, kind:
        case "=" | "!=", _:
            return
        case "starts with" | "ends with" | "contains", StringType() | BinaryType():
            return
        case "starts with" | "ends with" | "contains", _:
            raise ConfigError(
                f"--where: the column is of type {kind}, and only text and bytes compare with `{asked.comparison}`",
                column=asked.column,
            )
        case _, BooleanType():
            raise ConfigError(
                f"--where: the column is true or false: `{asked.comparison}` says nothing of it", column=asked.column
            )


def _number(asked: ColumnIs, kind: IcebergType) -> Value:
    match kind:
        case IntegerType() | LongType():
            return _whole(asked, kind)
        case DecimalType():
            return _decimal(asked, kind)
        case _:
            return _floating(asked, kind)


def _floating(asked: ColumnIs, kind: IcebergType) -> float:
    number = float(asked.value.text)
    with np.errstate(over="ignore"):
        rounded = np.float32(number) if isinstance(kind, FloatType) else number
    if not math.isfinite(rounded):
        raise _out_of_range(asked, kind)
    return number


def _whole(asked: ColumnIs, kind: IcebergType) -> int:
    number, limit = Decimal(asked.value.text), 1 << (_BITS[type(kind)] - 1)
    if number != number.to_integral_value():
        raise _mismatch(asked, kind)
    if not -limit <= number < limit:
        raise _out_of_range(asked, kind)
    return int(number)


def _decimal(asked: ColumnIs, kind: DecimalType) -> Decimal:
    number = Decimal(asked.value.text)
    with localcontext(prec=_DIGITS):
        is_large = number.adjusted() >= kind.precision - kind.scale
        if number and (is_large or number != round(number, kind.scale)):
            raise _out_of_range(asked, kind)
    return number


def _parsed(asked: ColumnIs, kind: IcebergType) -> Value:
    try:
        match kind:
            case UUIDType():
                return UUID(asked.value.text).bytes
            case DateType():
                return date.fromisoformat(asked.value.text)
            case _:
                moment = moment_of(asked.value.text)
    except ValueError:
        raise _mismatch(asked, kind) from None
    if moment.tzinfo is None:
        raise _mismatch(asked, kind)
    return moment.astimezone(UTC)


_WRITTEN: Final[Mapping[type[IcebergType], str]] = {
    StringType: "text in quotes",
    BinaryType: "text in quotes, or bytes such as 0x00ff",
    FixedType: "text in quotes, or bytes such as 0x00ff",
    IntegerType: "a whole number",
    LongType: "a whole number",
    FloatType: "a number",
    DoubleType: "a number",
    DecimalType: "a number",
    BooleanType: "true or false",
    TimestamptzType: "a time with a zone such as 2026-01-31T00:00:00Z",
    DateType: "a day such as 2026-01-31",
    UUIDType: "a UUID in quotes",
}


def _mismatch(asked: ColumnIs, kind: IcebergType) -> ConfigError:
    written = _WRITTEN.get(type(kind))
    advice = f"compare it with {written}" if written else f"there are no conditions on this type: {INSTEAD}"
    return ConfigError(f"--where: the column is of type {kind}: {advice}", column=asked.column)


def _out_of_range(asked: ColumnIs, kind: IcebergType) -> ConfigError:
    whole = (
        ". Unsigned numbers that are too large for it are in it as negative ones: -1 is the largest"
        if type(kind) in _BITS
        else ""
    )
    return ConfigError(f"--where: no value of a column of type {kind} equals this one{whole}", column=asked.column)
