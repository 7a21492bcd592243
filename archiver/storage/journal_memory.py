"""What a job remembers of journals' folders from one look to the next."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JournalMemory:
    """Folders by what was found out about them. Jobs that repeat pass one on to their chores.

    `agreed` are trails whose entries in the store are all known to the registry. In `refusing` no more objects are
    removed, because the store refuses it. Of `logged` folders it was logged that the store refuses removals.
    """

    agreed: set[str] = field(default_factory=set)
    refusing: set[str] = field(default_factory=set)
    logged: set[str] = field(default_factory=set)
