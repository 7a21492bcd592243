"""Legal holds: offsets whose records may not be removed until release, with future records if there is no end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSpan:
    """Half-open, of all partitions but `besides` if `partition` is None, without an end if `end_offset` is None."""

    partition: int | None = None
    start_offset: int = 0
    end_offset: int | None = None
    besides: tuple[int, ...] = ()

    def overlaps(self, partition: int, start: int, end: int) -> bool:
        is_same = partition not in self.besides if self.partition is None else self.partition == partition
        return is_same and start < end and start < _end(self) and self.start_offset < end

    @property
    def text(self) -> str:
        if self.partition is not None:
            where = f"partition {self.partition}"
        else:
            where = "partitions that come later" if self.besides else "all partitions"
        return f"{where} [{self.start_offset}, {'…' if self.end_offset is None else self.end_offset})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Times are ISO 8601 in UTC. `asked` is the user's start and end, resolved to `spans`."""

    id: str
    spans: tuple[HeldSpan, ...]
    reason: str
    placed_at: str
    placed_by: str
    asked: str = ""
    released_at: str | None = None
    released_by: str | None = None
    released_why: str | None = None

    @property
    def is_active(self) -> bool:
        return self.released_at is None

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"spans": [_plain(span) for span in self.spans]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        plain = {name: content for name, content in value.items() if name != "format"}
        return cls(**{**plain, "spans": tuple(map(_span, value["spans"]))})


def _plain(span: HeldSpan) -> dict[str, Any]:
    value = asdict(span)
    besides = value.pop("besides")
    return value | ({"besides": list(besides)} if besides else {})


def _span(value: Mapping[str, Any]) -> HeldSpan:
    return HeldSpan(**{**value, "besides": tuple(value.get("besides", ()))})


CONFIG_HOLD: Final = "config"
"""The id of the hold that `hold = true` means."""

WHOLE_TOPIC = HeldSpan()
"""Everything of a topic, as `hold = true` in its section has it."""


def of_config(*, hold: bool) -> tuple[Hold, ...]:
    if not hold:
        return ()
    return (Hold(id=CONFIG_HOLD, spans=(WHOLE_TOPIC,), reason="hold = true", placed_at="", placed_by="configuration"),)


def in_the_way(holds: Iterable[Hold], partition: int, start: int, end: int) -> Hold | None:
    for hold in holds:
        if hold.is_active and any(span.overlaps(partition, start, end) for span in hold.spans):
            return hold
    return None


def first_held(holds: Iterable[Hold], partition: int, *, above: int = 0) -> int | None:
    offsets = (
        max(above, span.start_offset)
        for hold in holds
        if hold.is_active
        for span in hold.spans
        if span.overlaps(partition, above, 2**63 - 1)
    )
    return min(offsets, default=None)


def _end(span: HeldSpan) -> int:
    return 2**63 - 1 if span.end_offset is None else span.end_offset
