"""What all screens share: one bar on a terminal, and errors as they come."""

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
    """Shows how many units were done in a second."""

    def render(self, task: Task) -> Text:
        """Show the current rate, or nothing if there is none."""
        return Text("" if task.speed is None else f"{task.speed:,.0f}/s", style="progress.data.speed")


class Terminal(Console):
    """A console for observers. If its pipe is closed, printing raises BrokenPipeError.

    Rich itself would end the process in the middle of the job's work.
    """

    def on_broken_pipe(self) -> None:
        """Stop printing, and raise the reason."""
        self.quiet = True
        raise BrokenPipeError("nobody reads standard output any more")


class Bars:
    """A bar with rate and time left, on a terminal only. Use as a context manager."""

    def __init__(self, console: Console, *, unit: str) -> None:
        self.console = console
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
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def show(self, title: str, *, total: int | None, done: int | None = None) -> None:
        """Show the bar with this title. Without `done` it keeps its position."""
        if self._task is None:
            self._task = self._progress.add_task(title, total=total)
        self._progress.update(self._task, description=title, total=total, completed=done)

    def advance(self, by: int = 1) -> None:
        """Move the bar, if it is shown."""
        if self._task is not None:
            self._progress.advance(self._task, by)

    def clear(self) -> None:
        """Remove the bar."""
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._progress.refresh()  # else the bar stays below the next line until the next tick
            self._task = None

    def close(self) -> None:
        """Remove the bar for good."""
        self._progress.stop()

    def say_error(self, where: str, error: ContextError) -> None:
        """Print an error and the place that it is about."""
        self.console.print(
            f"[bold red]{escape(where)}[/]: {type(error).__name__}: {escape(str(error))}",
            highlight=False,
            soft_wrap=True,
        )
