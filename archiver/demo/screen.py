"""Shows the demo's steps, answers and summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from archiver.local import Endpoints
from archiver.terminal.amounts import duration, size
from archiver.terminal.console import TextConsole
from archiver.terminal.listing import Column, Listing, Unpadded

Advance = Callable[[int], None]


class Stages:
    def __init__(self, console: TextConsole) -> None:
        self.console = console
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, title: str, total: int | None = None) -> Iterator[Advance]:
        """The yielded function moves the bar; without `total` there is none."""
        started = time.monotonic()
        with self._bar(title, total) as advance:
            yield advance
        self.seconds[title] = time.monotonic() - started
        took = duration(self.seconds[title])
        self.console.print(Text.assemble(("✓", "green"), f" {title} ", (took, "dim")))

    @contextmanager
    def _bar(self, title: str, total: int | None) -> Iterator[Advance]:
        if not self.console.is_terminal:
            self.console.print(f"  {title} …")
            yield lambda _: None
            return
        measured = (BarColumn(), TaskProgressColumn()) if total else ()
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *measured, TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True) as bars:
            task = bars.add_task(title, total=total)
            yield lambda count: bars.advance(task, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
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


def show_answer(console: TextConsole, text: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    if text:
        console.print(text, style="bold")
    kinds = zip(columns, rows[0] if rows else columns, strict=True)
    headings = [(name.replace("_", " "), isinstance(value, str)) for name, value in kinds]
    listing = Listing(
        *(
            Column(heading=heading, alone=f"{heading}: {{}}", kind="name" if is_text else "number")
            for heading, is_text in headings
        )
    )
    for row in rows:
        listing.add(*(f"{value:,}" if isinstance(value, int | float) else str(value) for value in row))
    console.print(listing)


def show_summary(console: TextConsole, summary: Summary) -> None:
    console.print("There and back", style="bold")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_row("records", f"{summary.records:,}")
    table.add_row("keys and values", size(summary.payload_bytes))
    table.add_row("in Kafka (zstd)", size(summary.log_bytes))
    table.add_row("in Iceberg", size(summary.stored_bytes))
    table.add_row("files", f"{summary.files:,}")
    table.add_row("values kept raw", f"{summary.raw_values:,} ({summary.raw_share:.4%})")
    table.add_row(f"digest {summary.digest}", "equal")
    for step, seconds in summary.seconds.items():
        table.add_row(Text(step, style="dim"), Text(duration(seconds), style="dim"))
    table.add_row("in all", duration(summary.total_seconds))
    table.add_row(Text("identical", style="bold"), Text("yes", style="bold green"))
    console.print(Unpadded(table))


def show_endpoints(console: TextConsole, endpoints: Endpoints) -> None:
    directory = endpoints.directory
    console.print("The stack is still up", style="bold")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", overflow="fold")
    table.add_column(overflow="fold")
    for name, address in endpoints.public().items():
        table.add_row(name, Text(address))
    console.print(Unpadded(table))
    console.print(
        f"Passwords and keys: archiver local status --dir {directory} --secrets\n"
        f"Go on archiving:    archiver archive --config {endpoints.config_path} --every 10s\n"
        f"Replay:             archiver replay flights --config {endpoints.config_path} --format jsonl\n"
        f"Stop it:            archiver local down --dir {directory}",
        soft_wrap=True,
    )
