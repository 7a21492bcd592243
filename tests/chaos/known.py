"""Open findings that histories run into, each by the words that give it away. A history ends where it meets one.

Each marks a scenario of `test_other_engines.py` as failing, strictly: the cure of a finding removes that mark, and with
it the finding from here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`text` is a pattern of violations, `verbs` are the acts that end with one, None for all of them.

    `is_bare` says that it shows only once registry and journal were lost together.
    """

    subject: str
    text: str
    verbs: frozenset[str] | None = None
    is_bare: bool = False

    def shows_in(self, verb: str, text: str, *, is_bare: bool) -> bool:
        """Whether this violation of an act is the finding."""
        fits = is_bare or not self.is_bare
        return fits and (self.verbs is None or verb in self.verbs) and re.search(self.text, text) is not None


FINDINGS: Final[tuple[Finding, ...]] = ()


def finding_in(verb: str, text: str, *, is_bare: bool) -> Finding | None:
    """The finding that a violation shows."""
    return next((each for each in FINDINGS if each.shows_in(verb, text, is_bare=is_bare)), None)
