"""Open findings, which end a history.

Each marks a strict failure in `test_other_engines.py`; a fix removes both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`text` is a pattern of violations, `verbs` its acts. `is_bare`: only without registry and journal."""

    subject: str
    text: str
    verbs: frozenset[str] | None = None
    is_bare: bool = False

    def shows_in(self, verb: str, text: str, *, is_bare: bool) -> bool:
        fits = is_bare or not self.is_bare
        return fits and (self.verbs is None or verb in self.verbs) and re.search(self.text, text) is not None


FINDINGS: Final[tuple[Finding, ...]] = ()


def finding_in(verb: str, text: str, *, is_bare: bool) -> Finding | None:
    return next((finding for finding in FINDINGS if finding.shows_in(verb, text, is_bare=is_bare)), None)
