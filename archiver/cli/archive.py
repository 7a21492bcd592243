"""`archiver archive`: archives topics, once or at an interval."""

from __future__ import annotations

from typing import Annotated

import typer

from archiver.cli.error_output import FAILED, reported
from archiver.cli.options import DEFAULT_CONFIG, AsJsonElsewhere, ConfigPath, seconds_of, wants_json
from archiver.errors import ConfigError

INTERRUPTED = 130


def archive(
    topics: Annotated[list[str] | None, typer.Argument(help="Topics; all configured ones where none is named.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    once: Annotated[bool, typer.Option("--once", help="To the end of every topic, then stop (the default).")] = False,
    every: Annotated[
        str | None, typer.Option("--every", help="Run again at this interval (60s, 5m), without end.")
    ] = None,
    accept_gap: Annotated[
        bool,
        typer.Option("--accept-gap", help="Where a log lost offsets before they were archived, record it and go on."),
    ] = False,
    json: AsJsonElsewhere = None,
) -> None:
    """Archive Kafka topics into their Iceberg tables, exactly once. Start it again after any interruption."""
    from archiver.cli.logs import log_to_stderr
    from archiver.config import load_config
    from archiver.ingest.job import ArchiveJob
    from archiver.ingest.stopping import stop_on_signals
    from archiver.observe.archive_json import archive_lines
    from archiver.observe.archive_screen import ArchiveScreen
    from archiver.observe.bars import Terminal
    from archiver.observe.output import Output
    from archiver.observe.telemetry import with_telemetry

    as_json = wants_json(json)
    with reported(as_json=as_json), stop_on_signals() as stop:
        seconds = _interval(once=once, every=every)
        loaded = load_config(config)
        log_to_stderr(as_json=as_json)
        output = Output(as_json=as_json, lines_of=archive_lines, screen=lambda: ArchiveScreen(Terminal()))
        with output, with_telemetry(loaded, output) as observer:
            job = ArchiveJob(loaded, topics or None, observer, accept_gaps=accept_gap)
            report = job.run_once(stop) if seconds is None else job.run_every(seconds, stop)
    if not report.succeeded or output.failed:
        raise typer.Exit(FAILED)
    if report.stopped and seconds is None:
        raise typer.Exit(INTERRUPTED)


def _interval(*, once: bool, every: str | None) -> float | None:
    if every is not None and once:
        raise ConfigError("Give --once or --every, not both")
    return seconds_of("--every", every)
