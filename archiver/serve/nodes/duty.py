"""What the coordinator of a group gives to work on that group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catalog.registry import GroupClaim


@dataclass(frozen=True, slots=True)
class GroupDuty:
    """The claim that work has on its group.

    `pass_on` lets the next write start if it may join the current one. The caller keeps the order from then on.
    """

    claim: GroupClaim
    pass_on: Callable[[], None] = lambda: None
