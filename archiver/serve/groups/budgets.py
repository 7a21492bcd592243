"""Limits on groups' memory and registry space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from catalog.registry import OffsetBudget

MOST_BYTES: Final = 256 << 20
"""What members take, over all groups of a server."""
MEMBER_BYTES: Final = 1024
"""What a member takes beside what it says, about."""
ENTRY_BYTES: Final = 128
"""What a name or a protocol of a member takes beside its bytes, about."""
PENDING_BYTES: Final = 256
"""What an id takes whose member has yet to join, about."""
GROUP_BYTES: Final = 4096
"""What a group takes beside its members, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBudget:
    """Limits of `owner`, a principal or an anonymous client's address.

    `groups` and `member_bytes` count per node, `offset_groups` and `offset_bytes` per cluster.
    """

    owner: str = ""
    groups: int = 1000
    member_bytes: int = 32 << 20
    offset_groups: int = 10_000
    offset_bytes: int = 64 << 20

    @property
    def offsets(self) -> OffsetBudget:
        return OffsetBudget(owner=self.owner, groups=self.offset_groups, bytes=self.offset_bytes)


class MemberMemory:
    """Bytes of members, also by owner."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._groups: dict[str, Mapping[str, int]] = {}
        self._owners: Counter[str] = Counter()
        self.bytes = 0

    def owner_bytes(self, owner: str) -> int:
        return self._owners[owner]

    def put(self, group_id: str, sizes: Mapping[str, int]) -> None:
        """`sizes` must not change afterwards."""
        if self._groups.get(group_id) is sizes:
            return
        self.drop(group_id)
        self._groups[group_id] = sizes
        self._owners.update(sizes)
        self.bytes += sum(sizes.values()) + GROUP_BYTES

    def drop(self, group_id: str) -> None:
        sizes = self._groups.pop(group_id, None)
        if sizes is None:
            return
        self.bytes -= sum(sizes.values()) + GROUP_BYTES
        for owner, size in sizes.items():
            self._owners[owner] -= size
            if not self._owners[owner]:
                del self._owners[owner]

    def is_full(self, size: int) -> bool:
        return size > 0 and self.bytes + size > self._most_bytes

    def is_over(self, budget: GroupBudget, size: int) -> bool:
        return size > 0 and self._owners[budget.owner] + size > budget.member_bytes
