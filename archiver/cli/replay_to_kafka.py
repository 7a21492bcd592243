"""`archiver replay --to-kafka`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from archiver.cli.error_output import FAILED

if TYPE_CHECKING:
    from archiver.records.selection import Selection
    from archiver.republish.job import TransferOrder


def move(
    config: Path,
    topic: str,
    selection: Selection,
    order: TransferOrder,
    *,
    bootstrap: str | None,
    kafka_options: Path | None,
    as_json: bool,
) -> None:
    """Exit with 1 if a group couldn't be carried over."""
    from archiver.config import load_config
    from archiver.replay import open_archive
    from archiver.replay.range_notes import range_notes
    from archiver.republish.client_options import destination_options
    from archiver.republish.job import TransferJob
    from archiver.republish.report import TransferNoted
    from archiver.terminal.console import Terminal
    from archiver.terminal.output import Output
    from archiver.terminal.transfer_screen import TransferScreen

    loaded = load_config(config)
    destination = destination_options(loaded.kafka, bootstrap=bootstrap, file=kafka_options)
    archive = open_archive(loaded, topic)
    output = Output(TransferScreen(Terminal()), as_json=as_json)
    job = TransferJob(archive, selection, order, source=loaded.kafka, destination=destination, observer=output)
    with output:
        for note in range_notes(archive, selection):
            output(TransferNoted(text=f"{topic}: {note}"))
        report = job.run()
    if not report.succeeded or output.failed:
        raise typer.Exit(FAILED)
