"""A job's memory of journals' folders."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JournalMemory:
    """Jobs that repeat pass one on to their chores.

    `agreed`: trails whose entries are all known to the registry. `refusing`: the store refuses removals, so none is
    tried. `logged`: the refusal was logged.
    """

    agreed: set[str] = field(default_factory=set)
    refusing: set[str] = field(default_factory=set)
    logged: set[str] = field(default_factory=set)
