"""How much one run of a compaction may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much one run may do. `parallel` tasks at a time at most, 0 for as many as the engine has slots.

    A run takes up no group beyond `most_bytes` of old files, and commits at least every `commit_seconds`. `is_over` is
    asked before each group is taken up. Groups of more bytes than `largest_group` are left alone: a task can't be cut.
    """

    parallel: int = 0
    most_bytes: int | None = None
    largest_group: int | None = None
    commit_seconds: float = 300.0
    is_over: Callable[[], bool] = lambda: False
