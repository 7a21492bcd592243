"""The demo's steps, with their times, shown as they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

Advance = Callable[[int], None]


class Stages:
    """Runs steps one after the other, shows them on a console, and remembers how long each took (seconds, by title)."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, title: str, total: int | None = None) -> Iterator[Advance]:
        """Run one step. With a `total` it has a bar, which the yielded function moves."""
        started = time.monotonic()
        with self._bar(title, total) as advance:
            yield advance
        self.seconds[title] = time.monotonic() - started
        self.console.print(f"[green]✓[/] {title} [dim]{self.seconds[title]:.1f} s[/]", highlight=False)

    @contextmanager
    def _bar(self, title: str, total: int | None) -> Iterator[Advance]:
        if not self.console.is_terminal:
            self.console.print(f"  {title} …", highlight=False)
            yield lambda _: None
            return
        measured = (BarColumn(), TaskProgressColumn()) if total else ()
        columns = (SpinnerColumn(), TextColumn("{task.description}"), *measured, TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True) as bars:
            task = bars.add_task(title, total=total)
            yield lambda count: bars.advance(task, count)
