"""The question before records, files or offsets are removed, and who answers it.

A job shows what it is about to remove in a `RemovalQuestion`. The command line answers by `--yes`, or asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalQuestion:
    """What is about to be removed from a topic: records, files, and spans of offsets (partition, start, end).

    `verb` is what happens to them, such as "erase". `things` names what is none of these, such as "the user jane".
    `facts` are lines to show before the question. `is_repeated` says that something changed while the last question
    was answered.
    """

    verb: str
    topic: str = ""
    things: str = ""
    records: int | None = None
    of_records: int | None = None
    files: int | None = None
    size_bytes: int | None = None
    spans: tuple[tuple[int, int, int], ...] = ()
    facts: tuple[str, ...] = ()
    is_repeated: bool = False


class Consent(Protocol):
    """Answers questions. With `asks` a person does: that takes time, so the job has to look again afterwards."""

    @property
    def asks(self) -> bool:
        """Whether a person is asked."""

    def __call__(self, question: RemovalQuestion) -> bool:
        """Return whether the removal may begin."""


@dataclass(frozen=True, slots=True)
class FixedConsent:
    """The same answer to every question."""

    answer: bool
    asks: bool = False

    def __call__(self, question: RemovalQuestion) -> bool:
        """Return the answer to any question."""
        del question
        return self.answer


GIVEN: Final = FixedConsent(answer=True)
WITHHELD: Final = FixedConsent(answer=False)
