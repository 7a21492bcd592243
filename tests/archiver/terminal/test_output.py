"""Output without a reader."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

import pytest

from archiver.ingest.events import JobEvent
from archiver.observer import all_of
from archiver.terminal.archive_screen import ArchiveScreen
from archiver.terminal.console import Terminal
from archiver.terminal.output import Output
from tests.support.archive.job_events import play, run


@contextmanager
def closed_pipe() -> Iterator[None]:
    reader, writer = os.pipe()
    os.close(reader)
    out = os.fdopen(writer, "w")
    with redirect_stdout(out):
        yield
    with suppress(BrokenPipeError):
        out.close()


def output(*, as_json: bool) -> Output[JobEvent]:
    return Output(ArchiveScreen(Terminal()), as_json=as_json)


@pytest.mark.parametrize("as_json", [True, False])
def test_a_closed_pipe_ends_the_output_and_nothing_else(as_json: bool, caplog: pytest.LogCaptureFixture) -> None:
    events: list[JobEvent] = []
    with closed_pipe(), output(as_json=as_json) as observer, caplog.at_level(logging.ERROR):
        play(all_of(observer, events.append))
    assert observer.failed
    assert [type(event) for event in events] == [type(event) for event in run()]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("as_json", [True, False])
def test_what_is_shown_has_not_failed(as_json: bool) -> None:
    out = io.StringIO()
    with redirect_stdout(out), output(as_json=as_json) as observer:
        play(observer)
    assert not observer.failed
    assert ('"event": "topics_opened"' in out.getvalue()) is as_json
    assert "orders" in out.getvalue()
