"""Connection slots.

Strangers (no authentication, or no request yet) get half. If all are taken, the oldest stranger of the address with
most strangers is closed. A principal gets nine tenths.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final, TypeAlias

Task: TypeAlias = "asyncio.Task[Any]"

_STRANGERS: Final = 2
"""Strangers get one in two places, and so does one address whose clients don't log in."""
_LEFT_BY_PRINCIPAL: Final = 10
"""A principal leaves one in ten places to other clients."""


class Places:
    """Use it from one event loop."""

    def __init__(self, most: int, most_per_address: int | None) -> None:
        """Without `most_per_address`, an address gets half, and authenticated clients don't count."""
        self._most = most
        self._most_strangers = max(1, most // _STRANGERS)
        self._most_per_address = most_per_address or max(1, most // _STRANGERS)
        self._counts_principals = most_per_address is not None
        self._most_of_principal = max(1, most - max(1, most // _LEFT_BY_PRINCIPAL))
        self._taken: dict[Task, str] = {}
        self._principals: dict[Task, str] = {}
        self._connections: Counter[str] = Counter()
        self._strangers: dict[str, dict[Task, None]] = {}
        self._stranger_count = 0
        self._addresses: Counter[str] = Counter()

    def refusal(self, address: str) -> str | None:
        if self._is_at_its_most(address) and address not in self._strangers:
            return f"its address has {self._addresses[address]} connections (max_connections_per_address)"
        if len(self._taken) >= self._most and not self._strangers:
            return f"{self._most} clients are connected (max_connections)"
        return None

    def give_way(self, address: str) -> Task | None:
        if not self._is_at_its_most(address):
            is_full = len(self._taken) >= self._most or self._stranger_count >= self._most_strangers
            if not is_full or not self._strangers:
                return None
            address = max(self._strangers, key=lambda name: len(self._strangers[name]))
        task = next(iter(self._strangers[address]))
        self.leave(task)
        return task

    def take(self, task: Task, address: str) -> None:
        self._taken[task] = address
        self._addresses[address] += 1
        self._strangers.setdefault(address, {})[task] = None
        self._stranger_count += 1

    def show(self, task: Task, principal: str | None) -> str | None:
        """Return why an authenticated client can't stay. `principal` is None without authentication."""
        address = self._taken.get(task)
        if address is None:
            return None
        self._forget_stranger(task, address)
        if principal is None:
            return None
        if self._connections[principal] >= self._most_of_principal:
            return f"its principal has {self._connections[principal]} connections, nine tenths of max_connections"
        self._principals[task] = principal
        self._connections[principal] += 1
        if not self._counts_principals:
            self._taken[task] = ""
            self._count_off(self._addresses, address)
        return None

    def leave(self, task: Task) -> None:
        principal = self._principals.pop(task, None)
        if principal is not None:
            self._count_off(self._connections, principal)
        address = self._taken.pop(task, None)
        if address:
            self._forget_stranger(task, address)
            self._count_off(self._addresses, address)

    def _is_at_its_most(self, address: str) -> bool:
        return self._addresses[address] >= self._most_per_address

    def _forget_stranger(self, task: Task, address: str) -> None:
        strangers = self._strangers.get(address, {})
        if task in strangers:
            del strangers[task]
            self._stranger_count -= 1
            if not strangers:
                del self._strangers[address]

    @staticmethod
    def _count_off(connections: Counter[str], name: str) -> None:
        connections[name] -= 1
        if not connections[name]:
            del connections[name]
