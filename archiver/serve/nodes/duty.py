"""A coordinator's claim, for work on its group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catalog.registry import GroupClaim


@dataclass(frozen=True, slots=True)
class GroupDuty:
    """`pass_on` lets the next write start if it may join the current one; the caller then keeps the order."""

    claim: GroupClaim
    pass_on: Callable[[], None] = lambda: None
