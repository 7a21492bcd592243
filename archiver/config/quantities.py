"""Sizes and durations, such as `256MiB` and `5m`.

A plain number other than 0 is refused: seconds of retention that were meant as days remove an archive.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator

_BYTES: Final = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_SECONDS: Final[Mapping[str, Decimal | int]] = {
    "ms": Decimal("0.001"),
    "s": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "d": 86400,
}
_QUANTITY: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)
_AMBIGUOUS: Final = "M"


class UnitMissing(ValueError):
    """`former` is the number's earlier meaning, with its unit."""

    def __init__(self, number: float, former: str) -> None:
        super().__init__(number, former)
        self.number = number
        self.former = former

    def __str__(self) -> str:
        return f"{_plain(self.number)} has no unit: {self.former} is what it meant until now"


def parse_bytes(text: object) -> int:
    """Parse `256MiB`, `1GB` or 0. Raises ValueError."""
    return int(_parse(text, _BYTES, "size", "256MiB"))


def parse_seconds(text: object) -> float:
    """Parse `500ms`, `5m`, `7d` or 0. Raises ValueError."""
    return float(_parse(text, _SECONDS, "duration", "5m"))


Bytes = Annotated[int, BeforeValidator(parse_bytes)]
Seconds = Annotated[float, BeforeValidator(parse_seconds)]


def bytes_text(number: int) -> str:
    """Exact: `64MiB`, `1000B`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if number and number % _BYTES[unit] == 0:
            return f"{number // _BYTES[unit]}{unit}"
    return f"{number}B"


def seconds_text(number: float) -> str:
    """Exact: `7d`, `5m`, `0.1s`."""
    for unit in ("d", "h", "m"):
        if number and number % int(_SECONDS[unit]) == 0:
            return f"{number / int(_SECONDS[unit]):.0f}{unit}"
    return f"{_plain(number)}s"


def _parse(value: object, units: Mapping[str, Decimal | int], what: str, example: str) -> Decimal:
    match = _QUANTITY.fullmatch(_text(value))
    number = Decimal(match[1]) if match else Decimal(0)
    if match is None or not math.isfinite(float(number)):
        raise _unreadable(value, units, what, example)
    if not match[2] and not number:
        return number
    if not match[2]:
        former = bytes_text(int(number)) if units is _BYTES else seconds_text(float(number))
        raise UnitMissing(float(number), former)
    if match[2] == _AMBIGUOUS and units is _SECONDS:
        raise ValueError(f"{value!r} may mean minutes or months: write {match[1]}min, or days such as 30d")
    for unit, factor in units.items():
        if unit.lower() == match[2].lower():
            return number * factor
    raise _unreadable(value, units, what, example)


def _unreadable(value: object, units: Iterable[str], what: str, example: str) -> ValueError:
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return ValueError(f"{shown} is not a {what}: write for example {example!r} (units: {', '.join(units)})")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return _plain(value)
    return ""


def _plain(number: float) -> str:
    return format(Decimal(repr(number)), "f").removesuffix(".0")
