"""Shows the embedded stack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import Progress as Bars
from rich.progress import SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from archiver.local.endpoints import Endpoints
from archiver.local.stack import BROKERS, Progress, parts_of
from archiver.local.status import PartStatus, StackStatus
from archiver.terminal.console import TextConsole
from archiver.terminal.listing import NOTHING, Column, Listing, Unpadded

_FINAL = ("ready", "already up", "stopped")
_COLOURS = {"ready": "green", "not answering": "yellow", "stopped": "red"}


@contextmanager
def followed(console: TextConsole) -> Iterator[Progress]:
    """A line for each part on a terminal, otherwise for each step."""
    if not console.is_terminal:
        yield lambda part, step: console.print(f"{part}: {step}")
        return
    done = Text("✓", style="green")
    columns = (SpinnerColumn(finished_text=done), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
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


def parts_listing(status: StackStatus) -> Listing:
    listing = Listing(
        Column(heading="server", kind="name"),
        Column(heading="version", kind="name"),
        Column(heading="health", kind="name"),
        Column(heading="pid"),
        Column(heading="address", alone="at {}", kind="text"),
    )
    for part in status.parts:
        listing.add(*_cells(part))
    return listing


def endpoints_table(endpoints: Endpoints, *, secrets: bool = False) -> Unpadded:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", overflow="fold")
    table.add_column(overflow="fold")
    values = endpoints.public() | (endpoints.secrets() if secrets else {}) | {"logs": str(endpoints.directory / "logs")}
    for name, value in values.items():
        table.add_row(name, Text(value))
    return Unpadded(table)


def _cells(part: PartStatus) -> tuple[str | Text, ...]:
    first_address = next(iter(part.addresses.values()), "")
    health = Text(part.health, style=_COLOURS[part.health])
    return part.title, part.version, health, str(part.pid or NOTHING), first_address or NOTHING
