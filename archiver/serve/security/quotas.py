"""Quotas per principal: requests and bytes a second, with throttling as in Kafka, and space for groups.

They count per process, over all connections; anonymous clients count by address.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from archiver.access.principals import ANONYMOUS, Principal
from archiver.serve.groups import GroupBudget

MOST_WAIT: Final = 10.0
"""The longest wait that one answer requests. The rest of a debt is requested with the next answer."""
_LEAST_WAIT: Final = 0.001
_BURST_SECONDS: Final = 1.0
_MOST_BUCKETS: Final = 10_000
_COMMITTED_BYTES_PER_SECOND: Final = float(2 << 20)
"""What one client may write into the registry: some thousands of offsets a second. Postgres cleans up at that pace."""
_USUAL: Final = GroupBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """For a principal (`User:alice`), a prefix (`User:team-*`), or all (`User:*`)."""

    principal: str
    requests_per_second: float | None = None
    bytes_per_second: float | None = None
    groups: int = _USUAL.groups
    member_memory: int = _USUAL.member_bytes
    offset_groups: int = _USUAL.offset_groups
    offset_size: int = _USUAL.offset_bytes


class Bucket:
    """A rate per second, with a burst of one second and at most `most_owed` seconds of debt."""

    __slots__ = ("_at", "_least", "_level", "_rate")

    def __init__(self, rate: float, now: float, *, most_owed: float = math.inf) -> None:
        self._rate = rate
        self._least = -most_owed * rate
        self._level = rate * _BURST_SECONDS
        self._at = now

    def take(self, amount: float, now: float) -> float:
        """Return the seconds to wait."""
        level = min(self._rate * _BURST_SECONDS, self._level + (now - self._at) * self._rate) - amount
        self._level = max(level, self._least)
        self._at = now
        return max(0.0, -self._level / self._rate)

    def owed(self, now: float) -> float:
        """In seconds. Less than the clock's resolution counts as 0."""
        owed = -self._level / self._rate - (now - self._at)
        return owed if owed > _LEAST_WAIT else 0.0

    def is_full(self, now: float) -> bool:
        return self._level + (now - self._at) * self._rate >= self._rate * _BURST_SECONDS


class Quotas:
    """The quotas of a server."""

    def __init__(self, quotas: Iterable[Quota] = ()) -> None:
        self._quotas = sorted(quotas, key=lambda quota: (quota.principal.endswith("*"), -len(quota.principal)))
        self._buckets: OrderedDict[Principal, tuple[Bucket | None, Bucket | None]] = OrderedDict()
        self._commits: OrderedDict[str, Bucket] = OrderedDict()

    def wait(self, principal: Principal, size: int, now: float) -> float:
        """`size` is the answer's. Return the seconds to wait."""
        if not self._quotas:
            return 0.0
        waits = [0.0]
        for bucket, amount in zip(self._buckets_for(principal, now), (1, size), strict=True):
            if bucket is not None:
                waits.append(bucket.take(amount, now))
        return min(MOST_WAIT, max(waits))

    def owed(self, principal: Principal, now: float) -> tuple[float, float]:
        """In seconds: for requests, for bytes."""
        if not self._quotas:
            return 0.0, 0.0
        requests, octets = (0.0 if bucket is None else bucket.owed(now) for bucket in self._buckets_for(principal, now))
        return min(MOST_WAIT, requests), min(MOST_WAIT, octets)

    def commit_wait(self, owner: str, size: int, now: float) -> float:
        """Return the seconds to wait."""
        bucket = self._commits.get(owner)
        if bucket is None:
            while len(self._commits) >= _MOST_BUCKETS and next(iter(self._commits.values())).is_full(now):
                self._commits.popitem(last=False)
            bucket = self._commits[owner] = Bucket(_COMMITTED_BYTES_PER_SECOND, now, most_owed=MOST_WAIT)
        self._commits.move_to_end(owner)
        return min(MOST_WAIT, bucket.take(size, now))

    def group_budget(self, principal: Principal, host: str) -> GroupBudget:
        """Anonymous clients have a budget per address."""
        owner = f"{principal} at {host}" if principal == ANONYMOUS else str(principal)
        quota = self._quota(principal)
        if quota is None:
            return GroupBudget(owner=owner)
        return GroupBudget(
            owner=owner,
            groups=quota.groups,
            member_bytes=quota.member_memory,
            offset_groups=quota.offset_groups,
            offset_bytes=quota.offset_size,
        )

    def _quota(self, principal: Principal) -> Quota | None:
        return next((quota for quota in self._quotas if _speaks_for(quota.principal, str(principal))), None)

    def _buckets_for(self, principal: Principal, now: float) -> tuple[Bucket | None, Bucket | None]:
        buckets = self._buckets.get(principal)
        if buckets is None:
            quota = self._quota(principal)
            rates = (quota.requests_per_second, quota.bytes_per_second) if quota else (None, None)
            requests, octets = (Bucket(rate, now) if rate else None for rate in rates)
            buckets = self._buckets[principal] = requests, octets
            self._forget(now)
        self._buckets.move_to_end(principal)
        return buckets

    def _forget(self, now: float) -> None:
        while len(self._buckets) > _MOST_BUCKETS:
            principal, buckets = next(iter(self._buckets.items()))
            if not all(bucket is None or bucket.is_full(now) for bucket in buckets):
                return
            del self._buckets[principal]


def _speaks_for(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
