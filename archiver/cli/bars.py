"""The frame of commands that show one bar on a terminal: start and stop, move it, say what failed."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from schema_mapping.errors import ContextError


class RateColumn(ProgressColumn):
    """Units a second."""

    def render(self, task: Task) -> Text:
        """The rate of late, nothing before there is one."""
        return Text("" if task.speed is None else f"{task.speed:,.0f}/s", style="progress.data.speed")


class Bars:
    """A bar with rate and time left, on a terminal only; `is_silent` says nothing at all. Use as a context."""

    def __init__(self, console: Console, *, unit: str, is_silent: bool = False) -> None:
        self.console = console
        self._is_silent = is_silent
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            RateColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=is_silent or not console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, title: str, *, total: int | None, done: int | None = None) -> None:
        """Have a bar with this title; `done` None leaves it where it is."""
        if self._task is None:
            self._task = self._progress.add_task(title, total=total)
        self._progress.update(self._task, description=title, total=total, completed=done)

    def advance(self, by: int = 1) -> None:
        """Move the bar, if there is one."""
        if self._task is not None:
            self._progress.advance(self._task, by)

    def clear(self) -> None:
        """Have no bar."""
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None

    def say_error(self, where: str, error: ContextError) -> None:
        """Say what stays as it is, and why."""
        if not self._is_silent:
            self.console.print(
                f"[bold red]{escape(where)}[/]: {type(error).__name__}: {escape(str(error))}",
                highlight=False,
                soft_wrap=True,
            )
