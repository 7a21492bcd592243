"""The options of a ReplayConsumer: some of librdkafka's, and two of the archiver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from archiver.errors import ConfigError


class OffsetReset(Enum):
    """For partitions without an offset, or with a retired one."""

    EARLIEST = "earliest"
    LATEST = "latest"
    ERROR = "error"


_RESETS: Final = {
    "earliest": OffsetReset.EARLIEST,
    "smallest": OffsetReset.EARLIEST,
    "beginning": OffsetReset.EARLIEST,
    "latest": OffsetReset.LATEST,
    "largest": OffsetReset.LATEST,
    "end": OffsetReset.LATEST,
    "error": OffsetReset.ERROR,
}
_FLAGS: Final = {True: True, False: False, "true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """The options of a ReplayConsumer.

    - `auto_offset_reset` (`auto.offset.reset`, default earliest)
    - `partition_eof` (`enable.partition.eof`)
    - `refresh_seconds` (`replay.refresh.ms`, default 5000): the interval of refreshes at the end of a partition
    - `parallelism` (`replay.parallelism`, default 4): partitions read ahead at a time, with a few batches of about 16
      MiB and one row group
    """

    auto_offset_reset: OffsetReset = OffsetReset.EARLIEST
    partition_eof: bool = False
    refresh_seconds: float = 5.0
    parallelism: int = 4

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> ReplayOptions:
        """Raises ConfigError, also for options of brokers and groups."""
        parsed: dict[str, Any] = {}
        for name, value in options.items():
            if name not in _PARSERS:
                raise ConfigError("a replay has no such option: leave it out", option=name, known=sorted(_PARSERS))
            attribute, parse = _PARSERS[name]
            try:
                parsed[attribute] = parse(value)
            except (KeyError, ValueError, TypeError):
                raise ConfigError("the option's value can't be right", option=name, value=value) from None
        return cls(**parsed)


def _positive(value: Any) -> int:
    number = int(value)
    if number <= 0:
        raise ValueError(number)
    return number


def _seconds(value: Any) -> float:
    return _positive(value) / 1000


def _reset(value: Any) -> OffsetReset:
    return _RESETS[str(value).lower()]


def _flag(value: Any) -> bool:
    return _FLAGS[value.lower() if isinstance(value, str) else value]


_PARSERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "auto.offset.reset": ("auto_offset_reset", _reset),
    "enable.partition.eof": ("partition_eof", _flag),
    "replay.refresh.ms": ("refresh_seconds", _seconds),
    "replay.parallelism": ("parallelism", _positive),
}
