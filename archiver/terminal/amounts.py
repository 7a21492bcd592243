"""Human-readable counts, sizes, rates and times."""

from __future__ import annotations

from datetime import datetime
from typing import Final

_SIZES: Final = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_AGES: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))
_MINUTE: Final = 60
_HOUR: Final = 3_600


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 record`, `6,000 records`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def size(number: float) -> str:
    """`812 B`, `31.0 kB`, `84.2 MB`."""
    for unit, name in _SIZES:
        if number >= unit:
            return f"{number / unit:,.1f} {name}"
    return f"{number:,.0f} B"


def share(part: float) -> str:
    """`0 %` only for 0."""
    if part <= 0:
        return "0 %"
    return "< 0.01 %" if part < 0.0001 else f"{part:.2%}".replace("%", " %")  # noqa: PLR2004 - what two digits can show


def duration(seconds: float) -> str:
    """`0.4 s`, `2 min 5 s`, `1 h 5 min`."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR:,} h {whole % _HOUR // _MINUTE} min"


def age(seconds: float | None) -> str:
    """`42 s`, `3.5 h`."""
    if seconds is None:
        return "-"
    for length, unit in _AGES:
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def rates(records: int, source_bytes: int, seconds: float) -> str:
    """`47,564 records/s, 6.8 MB/s`. Empty below one record a second."""
    if seconds <= 0 or records < seconds:
        return ""
    return f"{records / seconds:,.0f} records/s, {size(source_bytes / seconds)}/s"


def clock_time() -> str:
    return datetime.now().astimezone().strftime("%H:%M:%S")
