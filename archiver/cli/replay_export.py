"""`archiver replay` to a file or standard output."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from archiver.light_start import quick_imports

if TYPE_CHECKING:
    from archiver.observer import Observer
    from archiver.records.selection import Selection
    from archiver.replay.export import ExportEvent
    from archiver.replay.output_file import OutputFile, StandardOutput
    from archiver.terminal.console import TextConsole

BROKEN_PIPE = 141


def export(
    config: Path,
    topic: str,
    selection: Selection,
    output: Path | None,
    *,
    is_arrow: bool,
    decode: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Without a file, the summary goes to standard error."""
    with quick_imports():
        from archiver.config import load_config
        from archiver.records.matching import SelectedRecords
        from archiver.replay import open_archive
        from archiver.replay.export import Export, export_arrow, export_jsonl
        from archiver.replay.range_notes import range_notes
        from archiver.terminal.console import Terminal
        from archiver.terminal.json_lines import write_line

    archive = open_archive(load_config(config), topic, coerces=not decode)
    shares_terminal = output is None and sys.stdout.isatty()  # a bar would stand among the records
    errors = Terminal(stderr=True, force_terminal=False if shares_terminal else None)
    selected = SelectedRecords.of(archive, selection)
    notes = [*range_notes(archive, selection)]
    for note in () if as_json else notes:
        errors.print(f"{topic}: {note}", style="yellow")
    started = time.monotonic()
    with _opened(output) as stream, _observed(errors, topic) as observer:
        work = Export(selected=selected, limit=limit, observer=observer)
        records = export_arrow(work, stream) if is_arrow else export_jsonl(work, stream, decoded=decode)
    seconds, size = time.monotonic() - started, stream.size_bytes
    if (unjudged := selected.unjudged.text(topic)) is not None:
        notes.append(unjudged)
        if not as_json:
            errors.print(f"{topic}: {unjudged}", style="yellow")
    if as_json:
        write_line(
            "replayed",
            out=sys.stderr if output is None else sys.stdout,
            topic=topic,
            records=records,
            size_bytes=size,
            seconds=round(seconds, 3),
            file=None if output is None else str(output),
            notes=notes,
        )
        return
    if output is None and not errors.is_terminal:
        return
    from archiver.terminal.replay_screen import export_summary

    where = str(output) if output is not None else "standard output"
    summary = f"{topic}: {export_summary(records=records, size_bytes=size, seconds=seconds, where=where)}"
    if output is not None:
        typer.echo(summary)
    else:
        errors.print(summary)


@contextmanager
def _observed(errors: TextConsole, topic: str) -> Iterator[Observer[ExportEvent]]:
    from archiver.observer import all_of, ignore

    if not errors.is_terminal:
        yield ignore
        return
    from archiver.terminal.replay_screen import ReplayScreen

    with ReplayScreen(errors, topic) as screen:
        yield all_of(screen)


@contextmanager
def _opened(output: Path | None) -> Iterator[OutputFile | StandardOutput]:
    from archiver.replay.output_file import OutputFile

    if output is not None:
        with OutputFile(output) as file:
            yield file
        return
    with standard_output() as stream:
        yield stream


@contextmanager
def standard_output() -> Iterator[StandardOutput]:
    """If the reader closes it, the command exits without an error."""
    from archiver.replay.output_file import StandardOutput

    try:
        stream = StandardOutput()
        yield stream
        stream.flush()
    except BrokenPipeError:
        # what Python still holds for the closed pipe must not fail again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(BROKEN_PIPE) from None
