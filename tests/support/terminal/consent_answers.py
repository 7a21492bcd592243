"""A person's answers to questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from archiver.upkeep.consent import RemovalQuestion


@dataclass
class Answers:
    deeds: list[Callable[[], object]] = field(default_factory=list)
    answer: bool = True
    asked: list[RemovalQuestion] = field(default_factory=list)
    is_there: bool = True

    def ask(self, question: RemovalQuestion) -> bool:
        self.asked.append(question)
        if self.deeds:
            self.deeds.pop(0)()
        return self.answer
