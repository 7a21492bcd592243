"""Printed text is not interpreted."""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver.errors import ParseHalted, UnknownTopic
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.error_text import error_text
from archiver.terminal.listing import Column, Listing

ROOT = Path(__file__).parents[3]
ODD = "set [archive] spool, [bold]not[/] this [/red] :zap: [x=1, y='[2]'] \\[escaped] [link=http://e.com]"


def printed(*what: object) -> str:
    console = TextConsole(file=io.StringIO())
    console.print(*what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_text_is_printed_as_it_is() -> None:
    assert printed(ODD) == f"{ODD}\n"


def test_cells_and_headings_too() -> None:
    listing = Listing(Column(heading=ODD), Column(heading="[b]", kind="name"))
    listing.add(ODD, ODD)
    assert printed(listing).count(ODD) == 3


@pytest.mark.parametrize("terminal", [True, False])
def test_titles_of_bars_too(terminal: bool) -> None:
    console = TextConsole(file=io.StringIO(), width=400, force_terminal=terminal)
    with Bars(console, unit="file") as bars:
        bars.show(ODD, total=3)
        bars.say_error(ODD, UnknownTopic(ODD, topic=ODD))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().count(ODD) >= 3


def test_an_error_says_all_it_knows() -> None:
    error = ParseHalted("[truncated] at the first value", topic="orders", partition=3, offset=120, codes=["[a]", "b"])
    assert printed(error_text(error)) == (
        "ParseHalted: [truncated] at the first value\n  topic: orders\n  partition: 3\n  offset: 120\n  codes: [a], b\n"
    )


def test_what_an_error_names_by_key_has_a_line_each() -> None:
    text = error_text(UnknownTopic("gone", addresses={"b1:9092": "refused", "b2:9092": "[timed out]"})).plain
    assert text.splitlines()[1:] == ["  addresses:", "    b1:9092: refused", "    b2:9092: [timed out]"]


def markup(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module="rich.console", names=names) if any(name.name == "Console" for name in names):
                yield "rich's own Console"
            case ast.ImportFrom(module="rich" | "rich.markup"):
                yield "rich.print or markup"
            case ast.Attribute(attr="from_markup" | "render_str"):
                yield node.attr
            case ast.Call(func=ast.Name(id="TextColumn"), keywords=keywords):
                named = {keyword.arg: keyword.value for keyword in keywords}
                if not (isinstance(value := named.get("markup"), ast.Constant) and value.value is False):
                    yield "a TextColumn with markup"
            case ast.Call(func=ast.Attribute(attr="add_row"), args=args):
                if any(isinstance(argument, ast.JoinedStr) and "[/" in ast.unparse(argument) for argument in args):
                    yield "markup in a row"


def test_nothing_of_ours_interprets_text() -> None:
    allowed = {"archiver/terminal/console.py", "archiver/terminal/listing.py", "archiver/terminal/bars.py"}
    marked = {str(path.relative_to(ROOT)): [*markup(path.read_text())] for path in ROOT.glob("archiver/**/*.py")}
    assert {path: names for path, names in marked.items() if names and path not in allowed} == {}


@pytest.mark.parametrize(
    "line",
    [
        "from rich.console import Console",
        "from rich import print",
        "Text.from_markup('[b]x')",
        "TextColumn('{task.description}')",
        "TextColumn('x', markup=True)",
        "table.add_row(f'[dim]{x}[/]')",
    ],
)
def test_such_lines_are_found(line: str) -> None:
    assert list(markup(line))
