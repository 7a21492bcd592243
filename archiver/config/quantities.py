"""Parses sizes and durations as people write them: `256MiB` into bytes, `5m` into seconds."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BeforeValidator

_BYTES = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def _parse(text: object, units: dict[str, float] | dict[str, int], what: str, example: str) -> float:
    if isinstance(text, int | float) and not isinstance(text, bool) and math.isfinite(text):
        return float(text)
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[2].lower() not in units or not math.isfinite(float(match[1])):
        known = ", ".join(unit for unit in units if unit)
        shown = str(text).lower() if isinstance(text, bool) else repr(text)
        raise ValueError(f"{shown} is not a {what}: write for example {example!r} (units: {known})")
    return float(match[1]) * units[match[2].lower()]


def parse_bytes(text: object) -> int:
    """Parse a size like `256MiB`, `1GB` or a plain number of bytes. Raises ValueError if it is none."""
    return int(_parse(text, _BYTES, "size", "256MiB"))


def parse_seconds(text: object) -> float:
    """Parse a duration like `500ms`, `60s`, `5m`, `24h`, `7d` or plain seconds. Raises ValueError if it is none."""
    return _parse(text, _SECONDS, "duration", "5m")


Bytes = Annotated[int, BeforeValidator(parse_bytes)]
Seconds = Annotated[float, BeforeValidator(parse_seconds)]


def bytes_text(number: int) -> str:
    """Write a size as people do, exactly: `64MiB`, `1000`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if number and number % _BYTES[unit.lower()] == 0:
            return f"{number // _BYTES[unit.lower()]}{unit}"
    return str(number)


def seconds_text(number: float) -> str:
    """Write a duration as people do, exactly: `7d`, `5m`, `0.1s`."""
    for unit in ("d", "h", "m"):
        if number and number % _SECONDS[unit] == 0:
            return f"{number / _SECONDS[unit]:.0f}{unit}"
    return f"{number:g}s"
