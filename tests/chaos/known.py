"""Open findings that histories run into, each by the words that give it away. A history ends where it meets one.

Each marks a scenario of `test_other_engines.py` as failing, strictly: the cure of a finding removes that mark, and with
it the finding from here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_REMOVALS: Final = frozenset({"ERASE", "EXPIRE", "EXPIRE_ROWS"})
_NO_RANGE: Final = "(rows that the registry has no range of|that no range of the registry|wasn't searched)"


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


NO_ORIGIN: Final = Finding(
    subject="without registry and journal, rows of files without an origin belong to no range",
    text=f"{_NO_RANGE}|somebody added them; remove them|calls archived rows foreign",
    is_bare=True,
)
MIXED_FILE: Final = Finding(
    subject="a retirement of rows in one Kafka partition stops at a file that has rows of others",
    text=f"{_NO_RANGE}.*/other-",
    verbs=frozenset({"EXPIRE", "EXPIRE_ROWS"}),
)
COPIED_ROWS: Final = Finding(
    subject="rows that a refill copied out of a file with delete files belong to no range",
    text=f"{_NO_RANGE}(?!.*/other-)",
    verbs=_REMOVALS,
)
FOLDED_DELETES: Final = Finding(
    subject="a compaction that folds in delete files makes a range of several files impossible to refill",
    text="were erased or lost before, and which they were isn't known any more",
    verbs=frozenset({"REFILL"}),
)
SPLIT_FILE: Final = Finding(
    subject="ranges that share a file which other engines split can't be rewritten",
    text="the new files don't cover the very offsets of the old ones",
)
COPIED_FILE: Final = Finding(
    subject="a refilled copy of one of a range's files passes for that file itself",
    text='key value violates unique constraint "files_pkey"|registry and journal differ: files',
)

FINDINGS: Final = (NO_ORIGIN, MIXED_FILE, COPIED_ROWS, FOLDED_DELETES, SPLIT_FILE, COPIED_FILE)


def finding_in(verb: str, text: str, *, is_bare: bool) -> Finding | None:
    """The finding that a violation shows."""
    return next((each for each in FINDINGS if each.shows_in(verb, text, is_bare=is_bare)), None)
