"""Consent to removals."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final, Protocol

import typer

from archiver.errors import ConsentMissing
from archiver.terminal.amounts import counted, size
from archiver.terminal.console import TextConsole

if TYPE_CHECKING:
    from archiver.upkeep.consent import Consent, RemovalQuestion

_SHOWN: Final = 10

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask. Required without a terminal.")]


class Prompt(Protocol):
    @property
    def is_there(self) -> bool: ...

    def ask(self, question: RemovalQuestion) -> bool: ...


class TerminalPrompt:
    """Standard input and error, if both are a terminal."""

    @property
    def is_there(self) -> bool:
        return sys.stdin.isatty() and sys.stderr.isatty()

    def ask(self, question: RemovalQuestion) -> bool:
        """Only `y` and `yes` mean yes."""
        console = TextConsole(stderr=True)
        if question.is_repeated:
            console.print("This has changed since the last question:", style="yellow")
        for line in (*span_lines(question), *question.facts):
            console.print(f"  {line}", soft_wrap=True)
        console.print(f"{deed(question)}? [y/N] ", end="", soft_wrap=True)
        return sys.stdin.readline().strip().lower() in {"y", "yes"}


def deed(question: RemovalQuestion) -> str:
    """As in `Erase 35 records of orders, in 25 files (3.1 MB)`."""
    if question.things:
        return f"{question.verb.capitalize()} {question.things}"
    parts: list[str] = []
    if question.records is not None and question.of_records is not None:
        parts.append(f"{question.records:,} of {counted(question.of_records, 'record')} of {question.topic}")
    elif question.records is not None:
        parts.append(f"{counted(question.records, 'record')} of {question.topic}")
    if question.files is not None:
        files = counted(question.files, "file")
        parts.append(f"in {files}" if parts else f"{files} of {question.topic}")
    size_text = f" ({size(question.size_bytes)})" if question.size_bytes else ""
    return f"{question.verb.capitalize()} {', '.join(parts)}{size_text}"


def span_lines(question: RemovalQuestion) -> list[str]:
    lines = [
        f"partition {partition}: offsets {start:,} to {end - 1:,}"
        if end - start > 1
        else f"partition {partition}: offset {start:,}"
        for partition, start, end in question.spans
    ]
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], f"and {counted(more, 'more span')} of offsets"] if more > 0 else lines


class TerminalConsent:
    asks = True

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt

    def __call__(self, question: RemovalQuestion) -> bool:
        return self._prompt.ask(question)


def consent_to(command: str, *, yes: bool, prompt: Prompt | None = None) -> Consent:
    """Raises ConsentMissing without `--yes` and without a terminal."""
    consent = consent_or_none(yes=yes, prompt=prompt)
    if consent is None:
        raise ConsentMissing(
            f"`archiver {command}` removes for good, and there is no terminal to ask on: give --yes. Nothing was done"
        )
    return consent


def consent_or_none(*, yes: bool, prompt: Prompt | None = None) -> Consent | None:
    """None without `--yes` and without a terminal."""
    from archiver.upkeep.consent import GIVEN

    if yes:
        return GIVEN
    prompt = prompt or TerminalPrompt()
    return TerminalConsent(prompt) if prompt.is_there else None
