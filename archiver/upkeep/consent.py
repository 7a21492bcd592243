"""The question before a removal, and its answer: `--yes` or a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalQuestion:
    """`spans` are (partition, start, end). `verb` is like "erase".

    `things` is anything without records, like "the user jane". `is_repeated` if something changed since the last
    answer.
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
    """With `asks` a person answers: search again afterwards."""

    @property
    def asks(self) -> bool: ...

    def __call__(self, question: RemovalQuestion) -> bool: ...


@dataclass(frozen=True, slots=True)
class FixedConsent:
    answer: bool
    asks: bool = False

    def __call__(self, question: RemovalQuestion) -> bool:
        del question
        return self.answer


GIVEN: Final = FixedConsent(answer=True)
WITHHELD: Final = FixedConsent(answer=False)
