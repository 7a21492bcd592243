"""Tables at any width."""

from __future__ import annotations

import io

import pytest

from archiver.terminal.console import TextConsole
from archiver.terminal.listing import Column, Listing

ROWS = [("orders", "kafka.orders", "369,498", "62.8 MB"), ("metrics.cpu.total", "kafka.metrics_cpu", "1", "-")]


def listing() -> Listing:
    made = Listing(
        Column(heading="topic", kind="name"),
        Column(heading="table", alone="into {}", kind="name", is_optional=True),
        Column(heading="records", alone="records: {}"),
        Column(heading="read", alone="{} read"),
    )
    for row in ROWS:
        made.add(*row)
    return made


def shown(width: int | None, what: Listing) -> list[str]:
    console = TextConsole(file=io.StringIO(), width=width)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_table_where_it_fits() -> None:
    assert shown(60, listing()) == [
        "topic              table              records     read",
        "orders             kafka.orders       369,498  62.8 MB",
        "metrics.cpu.total  kafka.metrics_cpu        1        -",
    ]


def test_fewer_columns_where_it_fits_then() -> None:
    assert shown(40, listing()) == [
        "topic              records     read",
        "orders             369,498  62.8 MB",
        "metrics.cpu.total        1        -",
    ]


def test_lines_where_no_table_fits() -> None:
    assert shown(30, listing()) == [
        "orders  into kafka.orders",
        "  records: 369,498",
        "  62.8 MB read",
        "metrics.cpu.total  into",
        "kafka.metrics_cpu",
        "  records: 1",
    ]


@pytest.mark.parametrize("width", range(8, 70))
def test_no_digit_is_cut_at_any_width(width: int) -> None:
    text = "\n".join(shown(width, listing()))
    assert "…" not in text
    assert "369,498" in "".join(text.split()) if width < 18 else "369,498" in text


def test_elsewhere_a_line_is_as_long_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    long = Listing(Column(heading="topic", kind="name"), Column(heading="records"))
    long.add("t" * 300, "1")
    assert shown(None, long)[1] == f"{'t' * 300}        1"


def test_lines_end_without_blanks() -> None:
    console = TextConsole(file=io.StringIO(), width=60)
    made = Listing(Column(heading="topic", kind="name"), Column(heading="a longer heading", kind="text"))
    made.add("orders", "-")
    console.print(made)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "topic   a longer heading\norders  -\n"
