"""A limit of records or bytes per second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from archiver.config.quantities import parse_bytes
from archiver.errors import ConfigError

_STEPS: Final = 4
"""A limited transfer sends a piece about so often in a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Limits per second. None: no limit."""

    records: int | None = None
    bytes: int | None = None

    @classmethod
    def parse(cls, text: str | None) -> Rate:
        """Parse `5000` (records a second) or `10MiB` (bytes a second). Raises ConfigError."""
        if text is None:
            return cls()
        plain = text.strip().removesuffix("/s")
        try:
            amount = int(plain) if plain.isdecimal() else parse_bytes(plain)
        except ValueError:
            amount = 0
        if amount < 1:
            raise ConfigError(
                "--rate is neither a number of records nor a size for each second: write 5000, or 10MiB", found=text
            )
        return cls(records=amount) if plain.isdecimal() else cls(bytes=amount)

    @property
    def most_rows(self) -> int | None:
        return None if self.records is None else max(1, self.records // _STEPS)

    @property
    def most_bytes(self) -> int | None:
        return None if self.bytes is None else max(1, self.bytes // _STEPS)


UNLIMITED: Final = Rate()


class Pace:
    """Idle time isn't made up for."""

    def __init__(self, rate: Rate, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._now = now
        self._free_at = now()

    def pause_after(self, *, records: int, size: int) -> float:
        seconds = 0.0
        if self._rate.records is not None:
            seconds = records / self._rate.records
        elif self._rate.bytes is not None:
            seconds = size / self._rate.bytes
        now = self._now()
        self._free_at = max(self._free_at, now - 1 / _STEPS) + seconds
        return max(0.0, self._free_at - now)
