"""How start and stop look to whoever waits: a line for each part on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress as Bars
from rich.progress import SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from archiver.local.stack import BROKERS, Progress, parts_of

_FINAL = ("ready", "already up", "stopped")


@contextmanager
def followed(console: Console) -> Iterator[Progress]:
    """A progress callback for LocalStack that shows on `console` what each part does."""
    if not console.is_terminal:
        yield lambda part, step: console.print(f"{part}: {step}", highlight=False)
        return
    columns = (SpinnerColumn(finished_text="[green]✓[/]"), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bars(*columns, console=console) as bars:
        width = max(len(part.title) for part in parts_of(max(BROKERS)))
        tasks: dict[str, TaskID] = {}

        def show(part: str, step: str) -> None:
            description = f"{part:<{width}}  {step}"
            if part not in tasks:
                tasks[part] = bars.add_task(description, total=1)
            finished = step.startswith(_FINAL)
            bars.update(tasks[part], description=description, completed=1 if finished else 0)

        yield show
