"""What a person sees of a run: on a terminal with a bar, elsewhere in lines."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from archiver.cli.archive_view import PeopleObserver
from tests.archiver.ingest.events import play


@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_is_told(terminal: bool) -> None:
    out = io.StringIO()
    with PeopleObserver(Console(file=out, force_terminal=terminal, width=160, color_system=None)) as observer:
        play(observer)
    text = " ".join(out.getvalue().split())
    for part in ("orders into kafka.orders", "committed 90 records", "recorded as lost [10, 50)", "DataLoss: Records"):
        assert part in text
    assert "Wave 1: 2 tasks for 1 partitions of 1 topics" in text
    assert ("/200 offsets" in text) is terminal
