"""Bars name their unit."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from archiver.replay.export import ExportStarted
from archiver.republish.report import TransferStarted
from archiver.terminal.bars import Bars
from archiver.terminal.console import TextConsole
from archiver.terminal.replay_screen import ReplayScreen
from archiver.terminal.transfer_screen import TransferScreen
from tests.support.terminal.screen import seen

WIDTH = 120


def replay(console: TextConsole) -> Bars:
    screen = ReplayScreen(console, "orders")
    screen(ExportStarted(offsets=10))
    return screen


def transfer(console: TextConsole) -> Bars:
    screen = TransferScreen(console)
    screen(TransferStarted(transfer="copy", topic="orders", target="orders-2", behind=10, resumed=False))
    return screen


@pytest.mark.parametrize("started", [replay, transfer])
def test_offsets_are_counted(started: Callable[[TextConsole], Bars]) -> None:
    written = io.StringIO()
    with started(TextConsole(file=written, width=WIDTH, force_terminal=True)):
        shown = seen(written.getvalue(), WIDTH)
    assert "10 offsets to do" in shown
