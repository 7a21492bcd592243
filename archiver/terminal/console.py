"""Consoles that print text verbatim."""

from __future__ import annotations

from typing import IO

from rich.console import Console

UNLIMITED = 10_000
"""The width where nobody watches: a line of a log is one line, however long."""


class TextConsole(Console):
    """Without markup, emoji codes and highlighting. Wraps only on a terminal or if `COLUMNS` is set."""

    def __init__(
        self,
        *,
        stderr: bool = False,
        file: IO[str] | None = None,
        width: int | None = None,
        force_terminal: bool | None = None,
    ) -> None:
        super().__init__(
            stderr=stderr,
            file=file,
            width=width,
            force_terminal=force_terminal,
            markup=False,
            emoji=False,
            highlight=False,
        )
        if self._width is None and not self.is_terminal:
            self.width = UNLIMITED


class Terminal(TextConsole):
    """Raises BrokenPipeError if its pipe is closed; rich would end the process."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        raise BrokenPipeError("nobody reads standard output any more")
