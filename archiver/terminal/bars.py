"""The progress bar and error lines of all screens."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, Self

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress import Progress, Task, TaskID
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from archiver.terminal.amounts import counted
from archiver.terminal.console import TextConsole
from archiver.terminal.error_text import error_text
from archiver.terminal.listing import packed
from schema_mapping.errors import ContextError

_SHORTEST: Final = 8
_LONGEST: Final = 40
_APART: Final = 2
_INDENT: Final = 1 + _APART
"""The spinner, and the space after it."""


class Bars:
    """Only on a terminal. A context manager."""

    def __init__(self, console: TextConsole, *, unit: str) -> None:
        self.console = console
        self._progress = _WrappedTask(console, unit)
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def show(self, title: str, *, total: int | None, done: int | None = None) -> None:
        if self._task is None:
            self._progress.start()
            self._task = self._progress.add_task(title, total=total)
        self._progress.update(self._task, description=title, total=total, completed=done)

    def advance(self, by: int = 1) -> None:
        if self._task is not None:
            self._progress.advance(self._task, by)

    def clear(self) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._progress.refresh()  # else the bar stays below the next line until the next tick
            self._task = None

    def pause(self) -> None:
        """Doesn't touch the terminal: a question may stand there."""
        self.clear()
        self._progress.stop()

    def close(self) -> None:
        self._progress.stop()

    def say_error(self, where: str, error: ContextError) -> None:
        self.console.print(Text.assemble((where, "bold red"), ": ", error_text(error)))


class _WrappedTask(Progress):
    def __init__(self, console: TextConsole, unit: str) -> None:
        super().__init__(console=console, transient=True, disable=not console.is_terminal)
        self._unit = unit
        self._spinner = Spinner("dots", style="progress.spinner")

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            yield _TaskLines(task, self._unit, self._spinner.render(self.get_time()))


class _TaskLines:
    def __init__(self, task: Task, unit: str, spinner: RenderableType) -> None:
        self._task = task
        self._unit = unit
        self._spinner = spinner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width - _INDENT
        title, facts = Text(self._task.description), self._facts()
        room = width - title.cell_len - sum(_APART + fact.cell_len for fact in facts) - _APART
        if room >= _SHORTEST:
            yield _row(self._spinner, title, self._bar(room), *facts)
            return
        yield _row(self._spinner, title)
        first, *lines = packed([Text(" " * _SHORTEST), *facts], width)  # at first the bar, as short as it may be
        beside = first[_SHORTEST + _APART :]
        yield _row("", self._bar(width - beside.cell_len - _APART), beside)
        for line in lines:
            yield _row("", line)

    def _bar(self, room: int) -> ProgressBar:
        task = self._task
        return ProgressBar(
            total=task.total,
            completed=task.completed,
            width=min(room, _LONGEST),
            pulse=task.total is None or not task.completed,
            animation_time=task.get_time(),
        )

    def _facts(self) -> list[Text]:
        task = self._task
        done = int(task.completed)
        if task.total is None:
            facts = [counted(done, self._unit)]
        elif done:
            facts = [f"{done:,} of {counted(int(task.total), self._unit)}"]
        else:  # the first task takes a while, and a bar that stands at 0 looks stuck
            facts = [f"{counted(int(task.total), self._unit)} to do"]
        if (speed := task.finished_speed or task.speed) is not None:
            facts.append(f"{speed:,.0f}/s")
        if task.elapsed is not None:
            facts.append(f"{_clock(task.elapsed)} so far")
        if task.time_remaining is not None:
            facts.append(f"{_clock(task.time_remaining)} left")
        return [Text(fact) for fact in facts]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _row(spinner: RenderableType, *cells: RenderableType) -> Table:
    grid = Table.grid(padding=(0, _APART, 0, 0), pad_edge=False)
    grid.add_column(width=_INDENT - _APART)
    for _ in cells:
        grid.add_column()
    grid.add_row(spinner, *cells)
    return grid
