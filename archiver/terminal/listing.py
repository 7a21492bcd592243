"""A table for any width: rows become lines if it doesn't fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from archiver.terminal.console import UNLIMITED

NOTHING: Final = "-"
_INDENT: Final = "  "
_APART: Final = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`alone` is the format without the heading.

    If the table doesn't fit, `name` columns make a row's first line. `is_optional` columns are left out first.
    """

    heading: str
    alone: str = ""
    kind: Literal["name", "text", "number"] = "number"
    is_optional: bool = False


class Unpadded:
    """A renderable without blanks at the ends of its lines."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._renderable, options, pad=False):
            segments = list(line)
            while segments and not segments[-1].text.strip():
                segments.pop()
            if segments:
                last = segments.pop()
                segments.append(Segment(last.text.rstrip(), last.style))
            yield from segments
            yield Segment.line()


class Listing:
    """Digits are never cut, and no row is dropped."""

    def __init__(self, *columns: Column) -> None:
        self._columns = columns
        self._rows: list[tuple[Text, ...]] = []

    def add(self, *cells: str | Text) -> None:
        self._rows.append(tuple(Text(cell) if isinstance(cell, str) else cell for cell in cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        everything = range(len(self._columns))
        for places in (everything, [index for index in everything if not self._columns[index].is_optional]):
            table = self._table(places)
            if Measurement.get(console, options.update(max_width=UNLIMITED), table).maximum <= options.max_width:
                yield Unpadded(table)
                return
        for row in self._rows:
            yield from self._lines(row, options.max_width)

    def _table(self, places: Sequence[int]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column in (self._columns[index] for index in places):
            table.add_column(Text(column.heading), justify="right" if column.kind == "number" else "left", no_wrap=True)
        for row in self._rows:
            table.add_row(*(row[index] for index in places))
        return table

    def _lines(self, row: Sequence[Text], width: int) -> Iterator[Text]:
        cells = list(zip(self._columns, row, strict=True))
        yield Text(_APART).join(_named(column, cell) for column, cell in cells if column.kind == "name")
        facts = [_named(column, cell) for column, cell in cells if column.kind != "name" and cell.plain != NOTHING]
        yield from packed(facts, width, indent=_INDENT)


def _named(column: Column, cell: Text) -> Text:
    before, _, after = (column.alone or ("{}" if column.kind == "name" else f"{column.heading} {{}}")).partition("{}")
    return Text.assemble(before, cell, after)


def packed(pieces: Iterable[Text], width: int, *, indent: str = "") -> Iterator[Text]:
    """A piece wraps only if it is longer than a line."""
    line: Text | None = None
    for piece in pieces:
        if line is not None and line.cell_len + len(_APART) + piece.cell_len <= width:
            line.append(_APART).append_text(piece)
            continue
        if line is not None:
            yield line
        line = Text(indent).append_text(piece)
    if line is not None:
        yield line
