"""Budgets of loop time: one per payer, and a common one for payers over theirs while another payer reads.

A fetch with records has no budget and earns some: a reader's other requests never hold up its fetches.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

BURST_SECONDS: Final = 5.0
"""Loop time that a payer may save up: it covers the start of hundreds of clients."""
BURST_BESIDE_READERS: Final = 0.5
"""The same while other payers read records."""
MOST_DEBT: Final = 2.5
GROWTH: Final = 0.6
"""How fast the budgets of all payers together grow while another payer reads records, in shares of one payer."""
FLOOD_GROWTH: Final = 0.3
"""The same for floods: payers over their budgets with several requests waiting. Their growth isn't part of the rest."""
COMMON: Final = 0.25
"""The common budget for turns, in shares of one payer."""
_COMMON_LONG: Final = 0.15
"""The common budget for long work in the thread. It is another one, as long work would keep turns waiting."""
_COMMON_BURST: Final = 0.02
_MOST_COMMON_DEBT: Final = 0.02
"""What a turn took beyond this was taken from the loop by other processes."""
_MOST_LONG_DEBT: Final = 0.1
_COUNTED_FOR: Final = 2.0
_LEAST_DELAY: Final = 1e-6
_MOST_DELAY: Final = 30.0
_READS_FOR: Final = 2.0
"""How long after records were returned their payer counts as a reader, in seconds."""
_MOST_PAYERS: Final = 10_000


@dataclass(slots=True, eq=False)
class Payer:
    """A principal or an address. `start` orders payers; `level` is the remaining budget in seconds."""

    level: float
    at: float
    start: float = 0.0
    last_start: float = 0.0
    """Of its connection that had the last turn."""
    mean: float = 0.0
    long_work: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the one request whose answer is being put together in several turns: long answers take much memory."""
    waiting: list[tuple[bool, float, int, asyncio.Future[None], TurnTaker]] = field(default_factory=list)
    is_queued: bool = False
    is_common: bool = False
    """Whether its work is paid from the common budget."""
    common_start: float = 0.0
    """What it used of the common budget, as `start` is what it used of the loop."""
    next_long_work: float = 0.0
    """When the common budget may pay for long work of it again, on the loop's clock."""
    period: int = -1
    used: float = 0.0
    """What it used in this period, in seconds."""
    weight: float = 0.0
    """What it counts among the payers of this period: 1 if it used its part of the growth."""
    is_flood: bool = False

    @property
    def common_end(self) -> float:
        """Short requests and small users come first."""
        return self.common_start + self.mean


@dataclass(slots=True, eq=False)
class TurnTaker:
    """In seconds: used, and expected of the next turn."""

    payer: Payer
    start: float = 0.0
    last_seconds: float = 0.0
    expected_seconds: float = 0.0
    prepaid: float = 0.0
    is_pipelined: bool = False
    """Whether the request came before the previous answer: within a payer, other requests go first."""


class CommonBudget:
    def __init__(self, rate: float, most_debt: float) -> None:
        self._rate = rate
        self._most_debt = most_debt
        self._level = _COMMON_BURST
        self._at = 0.0

    def delay(self, now: float) -> float:
        self._level = min(_COMMON_BURST, self._level + (now - self._at) * self._rate)
        self._at = now
        return 0.0 if self._level > 0 else max(_LEAST_DELAY, -self._level / self._rate)

    def charge(self, seconds: float) -> None:
        self._level = max(self._level - seconds, -self._most_debt)


@dataclass(slots=True)
class _Active:
    """Payers that share a growth, weighted by use."""

    now: float = 0.0
    last: float = 0.0

    @property
    def count(self) -> float:
        return max(1.0, self.now, self.last)

    def end_period(self, *, is_next: bool) -> None:
        """`is_next`: the next period follows at once."""
        self.now, self.last = 0.0, self.now if is_next else 0.0


class LoopBudgets:
    """Delays are in seconds. Use it from one event loop."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._payers: OrderedDict[str, Payer] = OrderedDict()
        self._common = CommonBudget(share * COMMON, _MOST_COMMON_DEBT)
        self._long_work = CommonBudget(share * _COMMON_LONG, _MOST_LONG_DEBT)
        self._period = 0
        self._period_ends = 0.0
        self._active, self._floods = _Active(), _Active()
        self._reader: Payer | None = None
        self._reader_at = self._other_reader_at = float("-inf")

    def payer(self, name: str) -> Payer:
        payer = self._payers.get(name)
        if payer is None:
            payer = self._payers[name] = Payer(BURST_SECONDS, _now())
            self._forget()
        self._payers.move_to_end(name)
        return payer

    def delay(self, payer: Payer) -> float:
        level = self._level(payer)
        if level > 0:
            payer.is_common = False
            return 0.0
        return max(_LEAST_DELAY, -level / self._share)

    def common_delay(self, payer: Payer, *, is_long: bool = False) -> float | None:
        """None if the common budget doesn't apply."""
        now = _now()
        if not self._reads_beside(payer, now):
            return None
        return max(self._long_work.delay(now), payer.next_long_work - now) if is_long else self._common.delay(now)

    def charge(self, payer: Payer, seconds: float, *, is_common: bool = False) -> None:
        if payer is not self._reader:
            self._count(payer, seconds)
        if is_common:
            payer.common_start += seconds
            self._common.charge(seconds)
        else:
            payer.level = max(payer.level - seconds, -MOST_DEBT)

    def charge_long_work(self, payer: Payer, seconds: float) -> None:
        """A debt beyond its limit delays only the payer's next long work."""
        self._long_work.charge(seconds)
        payer.next_long_work = _now() + min(seconds / (self._share * _COMMON_LONG), _MOST_DELAY)

    def spare(self, payer: Payer, seconds: float) -> None:
        """Give back a fetch's time, and a share for other requests, but not the common budget's."""
        payer.level += seconds * self._share if payer.is_common else seconds * (1 + self._share)
        now = _now()
        if self._reader is not payer:
            self._reader, self._other_reader_at = payer, self._reader_at
        self._reader_at = now

    def _level(self, payer: Payer) -> float:
        now = _now()
        most, rate = BURST_SECONDS, self._share
        if self._reads_beside(payer, now):
            most = BURST_BESIDE_READERS
            rate = self._share * self._part(payer, now)
        payer.level = min(most, payer.level + (now - payer.at) * rate)
        payer.at = now
        return payer.level

    def _part(self, payer: Payer, now: float) -> float:
        """In shares of one payer."""
        self._begin_period(now)
        part = FLOOD_GROWTH / self._floods.count if payer.is_flood else GROWTH / self._active.count
        return max(0.0, part - COMMON) if payer.waiting else part

    def _count(self, payer: Payer, seconds: float) -> None:
        """Clients with little work leave the growth to the rest."""
        self._begin_period(_now())
        if payer.period != self._period:
            payer.period, payer.used, payer.weight = self._period, 0.0, 0.0
        payer.used += seconds
        is_flood = payer.level <= 0 and (payer.is_flood or len(payer.waiting) > 1)
        if is_flood != payer.is_flood:
            (self._floods if payer.is_flood else self._active).now -= payer.weight
            payer.is_flood, payer.weight = is_flood, 0.0
        part = self._share * GROWTH / self._active.count
        weight = 1.0 if is_flood or payer.level <= 0 else min(1.0, payer.used / (part * _COUNTED_FOR))
        if weight > payer.weight:
            (self._floods if is_flood else self._active).now += weight - payer.weight
            payer.weight = weight

    def _begin_period(self, now: float) -> None:
        if now >= self._period_ends:
            is_next = now < self._period_ends + _COUNTED_FOR
            self._active.end_period(is_next=is_next)
            self._floods.end_period(is_next=is_next)
            self._period += 1
            self._period_ends = now + _COUNTED_FOR

    def _reads_beside(self, payer: Payer, now: float) -> bool:
        read_at = self._other_reader_at if self._reader is payer else self._reader_at
        return now - read_at < _READS_FOR

    def _forget(self) -> None:
        while len(self._payers) > _MOST_PAYERS:
            name, payer = next(iter(self._payers.items()))
            has_saved_up = self._level(payer) >= BURST_BESIDE_READERS or len(self._payers) > 2 * _MOST_PAYERS
            if payer.waiting or not has_saved_up:
                return
            del self._payers[name]


def _now() -> float:
    return asyncio.get_running_loop().time()
