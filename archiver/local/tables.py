"""Tables that show a stack to people."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from archiver.local.endpoints import Endpoints
from archiver.local.status import PartStatus, StackStatus

_COLOURS = {"ready": "green", "not answering": "yellow", "stopped": "red"}


def parts_table(status: StackStatus) -> Table:
    """One row for each server."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("server", "version", "health", "pid", "address"):
        table.add_column(heading, no_wrap=True)
    for part in status.parts:
        table.add_row(*_cells(part))
    return table


def endpoints_table(endpoints: Endpoints, *, secrets: bool = False) -> Table:
    """One row for each address, and for each credential if asked for."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    values = endpoints.public() | (endpoints.secrets() if secrets else {}) | {"logs": str(endpoints.directory / "logs")}
    for name, value in values.items():
        table.add_row(name, Text(value))
    return table


def _cells(part: PartStatus) -> tuple[str | Text, ...]:
    first_address = next(iter(part.addresses.values()), "")
    health = Text(part.health, style=_COLOURS[part.health])
    return part.title, part.version, health, str(part.pid or ""), first_address
