"""What the demo shows: its steps with their times, Spark SQL's answers, the numbers of the run, and how to connect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from archiver.local import Endpoints

Advance = Callable[[int], None]
MEGABYTE = 1_000_000
_LABEL_WIDTH = 56
"""Labels and values then both fit a terminal of 80 columns."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The demo's numbers: sizes in bytes, and seconds by step."""

    records: int
    payload_bytes: int
    log_bytes: int
    stored_bytes: int
    files: int
    raw_share: float
    raw_values: int
    digest: str
    seconds: Mapping[str, float]
    total_seconds: float


def show_answer(console: Console, text: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Show a question with its answer."""
    table = Table(title=text, title_justify="left", title_style="bold")
    for column, value in zip(columns, rows[0] if rows else columns, strict=True):
        table.add_column(column.replace("_", " "), justify="left" if isinstance(value, str) else "right")
    for row in rows:
        table.add_row(*(f"{value:,}" if isinstance(value, int | float) else str(value) for value in row))
    console.print(table)


def show_summary(console: Console, summary: Summary) -> None:
    """Show the summary table. It is shown only after every record was compared."""
    table = Table(title="There and back", title_justify="left", title_style="bold", show_header=False)
    table.add_column(no_wrap=True, max_width=_LABEL_WIDTH)
    table.add_column(justify="right", no_wrap=True)
    table.add_row("records", f"{summary.records:,}")
    table.add_row("MB of keys and values", f"{summary.payload_bytes / MEGABYTE:.1f}")
    table.add_row("MB in Kafka (zstd)", f"{summary.log_bytes / MEGABYTE:.1f}")
    table.add_row("MB in Iceberg", f"{summary.stored_bytes / MEGABYTE:.1f}")
    table.add_row("files", f"{summary.files:,}")
    table.add_row("values kept raw", f"{summary.raw_values:,} ({summary.raw_share:.4%})")
    table.add_row(f"digest {summary.digest}", "equal")
    for step, seconds in summary.seconds.items():
        table.add_row(f"[dim]{step}[/]", f"[dim]{seconds:.1f} s[/]")
    table.add_row("in all", f"{summary.total_seconds:.1f} s")
    table.add_row("[bold]identical[/]", "[bold green]yes[/]")
    console.print(table)


def show_endpoints(console: Console, endpoints: Endpoints) -> None:
    """Show the addresses of everything that was left running."""
    directory = endpoints.directory
    table = Table(title="The stack is still up", title_justify="left", title_style="bold", show_header=False)
    for name, address in endpoints.public().items():
        table.add_row(name, address)
    console.print(table)
    console.print(
        f"Passwords and keys: archiver local status --dir {directory} --secrets\n"
        f"Go on archiving:    archiver archive --config {endpoints.config_path} --every 10s\n"
        f"Replay:             archiver replay flights --config {endpoints.config_path} --format jsonl\n"
        f"Stop it:            archiver local down --dir {directory}",
        highlight=False,
        soft_wrap=True,
    )
